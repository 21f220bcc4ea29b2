import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NoticeError, noticeOf, subjectOf } from "../notice.ts";
import type { Announcement } from "../source.ts";
import { aBody } from "../testing/fuzz.ts";
import { parseWebhook, WEBHOOK } from "./parse.ts";

const NOW = Date.UTC(2030, 0, 1);
const FOLDER = new URL("./samples/", import.meta.url);
const sample = (name: string): string => readFileSync(new URL(name, FOLDER), "utf8");
const parse = (body: unknown, headers: Readonly<Record<string, string>> = {}): Announcement =>
  parseWebhook({ body: typeof body === "string" ? body : JSON.stringify(body), headers }, { receivedAt: NOW });

function refusal(body: unknown, headers: Readonly<Record<string, string>> = {}): unknown {
  try {
    return parse(body, headers);
  } catch (error) {
    if (!(error instanceof NoticeError)) throw error;
    return { path: error.path, found: error.found };
  }
}

const MACHINE = "openstack:///8f0c6a5b-2b1e-4c55-9a41-1d1b5f0a0001";

test("every documented form is understood (S1)", () => {
  expect(Object.fromEntries(readdirSync(FOLDER).map((name) => [name, parse(sample(name))]))).toEqual({
    "plain.json": {
      dedupeKey: " change-4711",
      subject: " change-4711",
      reason: "scheduled_maintenance",
      machineIds: [MACHINE],
      deadline: Date.parse("2026-12-14T09:00:00Z"),
      clusterHint: "rack-7",
    },
    "cancelled.json": {
      dedupeKey: " change-4711-cancelled",
      subject: " change-4711",
      reason: "withdrawn",
      machineIds: [],
      deadline: null,
      clusterHint: null,
    },
    "cloud-event.json": {
      dedupeKey: "/racks/7 a-42",
      subject: "/racks/7 a-42",
      reason: "spot_interruption",
      machineIds: ["gce://project/europe-west1-b/gke-np-1", "i-0a1b2c3d4e5f60718"],
      deadline: Date.parse("2026-11-30T10:00:30Z"),
      clusterHint: null,
    },
  });
});

test("a CloudEvent is the same in structured and in binary mode, and with its data in base64", () => {
  const structured = JSON.parse(sample("cloud-event.json")) as { readonly data: object };
  const binary = parse(structured.data, {
    "content-type": "application/json",
    "ce-specversion": "1.0",
    "ce-id": "a%2D42",
    "ce-source": "/racks/7",
    "ce-type": "dev.relevo.notice.interruption",
  });
  const { data, ...attributes } = structured;
  const encoded = parse({ ...attributes, data_base64: Buffer.from(JSON.stringify(data)).toString("base64") });
  expect([binary, encoded]).toEqual([parse(sample("cloud-event.json")), parse(sample("cloud-event.json"))]);
});

test("a cancellation is of the same subject as what it takes back, and is no duplicate of it", () => {
  const [said, cancelled] = ["plain.json", "cancelled.json"].map((name) =>
    noticeOf(parse(sample(name)), { id: name, source: WEBHOOK, receivedAt: 0, body: "" }),
  );
  expect(subjectOf(cancelled ?? { source: "", dedupeKey: "" })).toBe(subjectOf(said ?? { source: "", dedupeKey: "" }));
  expect(cancelled?.dedupeKey).not.toBe(said?.dedupeKey);
});

test("no sender's source and id are another sender's: what is a duplicate of nothing is kept", () => {
  const event = { specversion: "1.0", type: "dev.relevo.notice.going", data: { machines: [MACHINE] } };
  const keys = [
    { id: "a b c", kind: "going", machines: [MACHINE] },
    { ...event, source: "a", id: "b c" },
    { ...event, source: "a b", id: "c" },
    { ...event, source: "a%20b", id: "c" },
    { ...event, source: " a", id: "b c" },
    { ...event, source: "a b", id: "c", type: "other" },
  ].map((body) => parse(body).dedupeKey);
  // The last one is the third one's, of another type: the same id of the same source is the same event.
  expect(new Set(keys).size).toBe(5);
});

test("what goes now has its end now, unless a time is given", () => {
  const going = (deadline?: string) => parse({ id: "1", kind: "going", machines: [MACHINE], deadline });
  expect([going().deadline, going("2030-01-01T00:00:30Z").deadline]).toEqual([NOW, NOW + 30_000]);
});

test("a kind or a type that is not known is kept, whatever its data", () => {
  const event = JSON.parse(sample("cloud-event.json")) as object;
  expect(
    [
      { id: "1", kind: "constructor" },
      { id: "2", kind: "earthquake", machines: [MACHINE] },
      { ...event, type: "com.example.created", data: "anything" },
      { ...event, type: "dev.relevo.notice.earthquake" },
    ].map((body) => parse(body).reason),
  ).toEqual(["unknown_kind", "unknown_kind", "unknown_kind", "unknown_kind"]);
});

test("what is wrong is refused with its field; the name of a node is no machine", () => {
  const event = JSON.parse(sample("cloud-event.json")) as object;
  expect({
    "a node's name": refusal({ id: "1", kind: "interruption", machines: [MACHINE, "ip-10-0-0-1.ec2.internal"] }),
    "no machine": refusal({ id: "1", kind: "interruption" }),
    "no id": refusal({ kind: "interruption", machines: [MACHINE] }),
    "no time": refusal({ id: "1", kind: "interruption", machines: [MACHINE], deadline: "soon" }),
    "cancels nothing": refusal({ id: "1", kind: "cancelled" }),
    "CloudEvents of tomorrow": refusal({ ...event, specversion: "2.0" }),
    "event without data": refusal({ ...event, data: undefined }),
    "event with a wrong machine": refusal({ ...event, data: { machines: ["x"] } }),
    "binary without an id": refusal({}, { "ce-specversion": "1.0", "ce-source": "s", "ce-type": "t" }),
    "base64 of nothing": refusal({ ...event, data_base64: "%%%" }),
  }).toEqual({
    "a node's name": { path: "machines.1", found: "ip-10-0-0-1.ec2.internal" },
    "no machine": { path: "machines", found: "[]" },
    "no id": { path: "id", found: "nothing" },
    "no time": { path: "deadline", found: "soon" },
    "cancels nothing": { path: "subject", found: "nothing" },
    "CloudEvents of tomorrow": { path: "specversion", found: "2.0" },
    "event without data": { path: "data", found: "nothing" },
    "event with a wrong machine": { path: "data.machines.0", found: "x" },
    "binary without an id": { path: "id", found: "nothing" },
    "base64 of nothing": { path: "data_base64", found: "" },
  });
});

test("whatever is sent, it is understood wholly or refused with a code", () => {
  const samples = readdirSync(FOLDER).map(sample);
  const someHeaders = fc.dictionary(fc.constantFrom("content-type", "ce-specversion", "ce-id", "ce-source", "ce-type"), fc.string());
  fc.assert(
    fc.property(aBody(samples), someHeaders, (body, headers) => {
      try {
        const { machineIds, deadline } = parse(body, headers);
        expect(deadline === null || Number.isFinite(deadline)).toBe(true);
        expect(machineIds.every((machine) => machine.includes("://") || machine.startsWith("i-"))).toBe(true);
      } catch (error) {
        if (!(error instanceof NoticeError)) throw error;
        expect(error.code).toBe("notice_malformed");
      }
    }),
    { numRuns: 1_000 },
  );
});
