import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NoticeError, subjectOf } from "../notice.ts";
import { MetadataUnreadable } from "../read-metadata.ts";
import { fuzzAgentSource, meaningOf, noticeFrom, samplesIn } from "../testing/agent-report.ts";
import { AZURE, azureSource as source } from "./parse.ts";
import { approvable, type AzureDocument, type AzureEvent, readAzure, saidOfMachine } from "./read.ts";

const samples = samplesIn(new URL("./samples/", import.meta.url));

test("everything that Azure's scheduled events say is understood (S1)", () => {
  expect(Object.fromEntries(samples.names.map((name) => [name, meaningOf(source, samples.text(name))]))).toEqual({
    "freeze-short": "null",
    "freeze-unknown": "scheduled_maintenance 2026-11-30T10:15:00",
    preempt: "spot_interruption 2026-11-30T10:00:30",
    "preempt-gone": "withdrawn",
    "preempt-of-neighbour": "null",
    "preempt-started": "spot_interruption 2026-11-30T10:00:01",
    "reboot-of-several": "scheduled_maintenance 2026-11-30T10:15:00",
    redeploy: "scheduled_maintenance 2026-11-30T10:15:00",
    terminate: "instance_state_change 2026-11-30T10:15:00",
    "unknown-type": "unknown_kind",
  });
});

test("one event told by two machines is a notice of each, and each takes back its own", () => {
  const other = {
    providerID:
      "azure:///subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/mc_shop/providers/Microsoft.Compute/virtualMachineScaleSets/aks-workers-vmss/virtualMachines/1",
    machineName: "aks-workers-vmss_1",
  };
  const key = (body: string): string => noticeFrom(source, body).dedupeKey;
  const subject = (body: string): string | undefined => subjectOf({ source: AZURE, dedupeKey: key(body) });
  expect(key(samples.changed("reboot-of-several", other))).not.toBe(key(samples.text("reboot-of-several")));
  expect(subject(samples.changed("reboot-of-several", other))).not.toBe(subject(samples.text("reboot-of-several")));
  expect(subject(samples.text("preempt-gone"))).toBe(subject(samples.text("preempt")));
});

test("an event of a machine that does not say what it is called is refused", () => {
  expect(() => noticeFrom(source, samples.changed("preempt", { machineName: undefined }))).toThrow(NoticeError);
});

test("whatever is sent, it is understood wholly or refused with a code", () => {
  fuzzAgentSource(source, samples);
});

const event = (change: Partial<AzureEvent> = {}): AzureEvent => ({
  EventId: "e-1",
  EventType: "Reboot",
  EventStatus: "Scheduled",
  Resources: ["vm-1"],
  NotBefore: "Mon, 30 Nov 2026 10:15:00 GMT",
  DurationInSeconds: -1,
  ...change,
});
const documentOf = (...events: AzureEvent[]): AzureDocument => ({ incarnation: 1, events });

test("Azure's Preempt for a neighbour is nothing that is said of this machine", () => {
  const preempt = documentOf(event({ EventType: "Preempt", Resources: ["vm-2"] }), event({ EventId: "e-2", Resources: ["VM-1", "vm-2"] }));
  expect(saidOfMachine(preempt, "vm-1").map(({ part }) => part)).toEqual(["e-2"]);
});

test("the document is read as Azure writes it; anything else is unreadable", () => {
  const text = JSON.stringify({ DocumentIncarnation: 3, Events: [event({ EventStatus: "Started", NotBefore: "" })] });
  expect(saidOfMachine(readAzure(text), "vm-1")).toEqual([
    {
      kind: "scheduledevents",
      part: "e-1",
      meaning: "Reboot Started",
      time: null,
      document: event({ EventStatus: "Started", NotBefore: "" }),
      isGoing: true,
    },
  ]);
  expect(readAzure('{"DocumentIncarnation":1,"Events":[]}').events).toEqual([]);
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (garbage) => {
      expect(() => readAzure(garbage)).toThrow(MetadataUnreadable);
    }),
  );
});

test("an event is approved only when each of its machines is this one or has agreed, and nothing of ours runs here", () => {
  const ask = (events: readonly AzureEvent[], change: object = {}): readonly string[] =>
    approvable(documentOf(...events), { machineName: "VM-1", agreed: [], isEmpty: true, ...change });
  expect({
    alone: ask([event()]),
    withANeighbour: ask([event({ Resources: ["vm-1", "vm-2"] })]),
    withOneThatAgreed: ask([event({ Resources: ["vm-1", "vm-2"] })], { agreed: ["vm-2"] }),
    ofTheNeighbourWhoAgreed: ask([event({ Resources: ["vm-2"] })], { agreed: ["vm-2"] }),
    occupied: ask([event()], { isEmpty: false }),
    started: ask([event({ EventStatus: "Started" })]),
    ofAnUnknownType: ask([event({ EventType: "Levitate" })]),
    ofNobody: ask([event({ Resources: [] })]),
  }).toEqual({
    alone: ["e-1"],
    withANeighbour: [],
    withOneThatAgreed: ["e-1"],
    ofTheNeighbourWhoAgreed: [],
    occupied: [],
    started: [],
    ofAnUnknownType: [],
    ofNobody: [],
  });
});
