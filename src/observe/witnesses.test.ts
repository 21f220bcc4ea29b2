import { expect, test } from "vitest";
import type { Epoch } from "../kernel/epoch.ts";
import type { Evidence } from "../model/evidence.ts";
import type { NoticeRecord } from "../store/port.ts";
import { witnessesOf } from "./witnesses.ts";

const NOW = Date.UTC(2030, 0, 1, 12);

const evidence = (over: Partial<Evidence> = {}): Evidence => ({
  id: "evidence-1",
  pool: "default/orders",
  instance: "orders-1",
  incarnation: 1,
  loss: "deadline",
  reason: "spot_interruption",
  podName: "pod",
  podUid: "pod-uid",
  nodeName: "node-a",
  nodeUid: "uid-a",
  nodeClaimName: null,
  nodeClaimUid: null,
  deadline: NOW + 120_000,
  noticeId: "n1",
  firstSeen: NOW,
  authorityEpoch: "0.1" as Epoch,
  ...over,
});

const notice = (id: string, source: string, over: Partial<NoticeRecord> = {}): NoticeRecord => ({
  id,
  source,
  dedupeKey: id,
  receivedAt: NOW,
  body: "",
  outcome: "matched",
  machineIds: ["i-a"],
  deadline: null,
  reason: "spot_interruption",
  ...over,
});

test("EventBridge, metadata, Auto Scaling and a NodeClaim that speak of one loss are one fact with three witnesses", () => {
  const notices = [
    notice("n3", "autoscaling", { receivedAt: NOW + 2_000, reason: "instance_state_change" }),
    notice("n2", "ec2-metadata", { receivedAt: NOW + 1_000, deadline: NOW + 110_000 }),
    notice("n1", "eventbridge"),
    notice("n4", "eventbridge", { machineIds: ["i-b"] }),
    notice("n5", "eventbridge", { outcome: "duplicate" }),
    notice("n6", "eventbridge", { receivedAt: NOW - 30 * 3_600_000 }),
    notice("n7", "eventbridge", { reason: null, outcome: "ignored" }),
  ];
  const found = witnessesOf([evidence()], {
    notices,
    machineOf: () => "i-a",
    findingsOf: () => [
      { reason: "node_deleting", loss: "voluntary", deadline: null, noticeId: null },
      { reason: "spot_interruption", loss: "deadline", deadline: NOW + 120_000, noticeId: "n1" },
    ],
  });
  expect(Object.fromEntries(found)).toEqual({
    "evidence-1": [
      { source: "ec2-metadata", reason: "spot_interruption", notice: "n2", at: NOW + 1_000, deadline: NOW + 110_000 },
      { source: "autoscaling", reason: "instance_state_change", notice: "n3", at: NOW + 2_000, deadline: null },
      { source: "cluster", reason: "node_deleting", notice: null, at: null, deadline: null },
    ],
  });
});

test("when its node is forgotten, the notice that evidence names leads to the machine; without one there is no witness", () => {
  const notices = [notice("n1", "eventbridge"), notice("n2", "gcp")];
  const input = { notices, machineOf: () => undefined, findingsOf: () => [] };
  expect([...witnessesOf([evidence()], input).values()].flat().map(({ notice: id }) => id)).toEqual(["n2"]);
  expect(witnessesOf([evidence({ noticeId: null })], input).size).toBe(0);
});

test("a withdrawal is a witness too: the fact stays, and that it was taken back is shown", () => {
  const notices = [notice("n1", "azure"), notice("n2", "azure", { reason: "withdrawn", outcome: "passed" })];
  const found = witnessesOf([evidence()], { notices, machineOf: () => "i-a", findingsOf: () => [] });
  expect(found.get("evidence-1")?.map(({ reason }) => reason)).toEqual(["withdrawn"]);
});
