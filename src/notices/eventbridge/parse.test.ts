import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_NOTICE_BYTES, type Notice, NoticeError, noticeOf, recordOfNotice, subjectOf } from "../notice.ts";
import { aBody } from "../testing/fuzz.ts";
import { rebalanceRecommendation, spotInterruptionWarning, stateChange } from "./compose.ts";
import { EVENTBRIDGE, parseEventBridge } from "./parse.ts";

const FOLDER = new URL("./samples/", import.meta.url);
const SAMPLES = readdirSync(FOLDER).toSorted();
const sample = (name: string): string => readFileSync(new URL(name, FOLDER), "utf8");
const object = (name: string): Record<string, unknown> => JSON.parse(sample(name)) as Record<string, unknown>;

const NOW = Date.parse("2026-11-30T10:00:01Z");
const parse = (body: string, options?: { readonly spotLeadMs?: number }): Notice =>
  noticeOf(parseEventBridge({ body }, { receivedAt: NOW, ...options }), { id: "notice-1", source: EVENTBRIDGE, receivedAt: NOW, body });
const at = (time: string): number => Date.parse(time);

function meaning(name: string): unknown {
  const { reason, machineIds, deadline, clusterHint } = parse(sample(name));
  return { reason, machineIds, deadline: deadline === null ? null : new Date(deadline).toISOString(), clusterHint };
}

function refusal(body: string): unknown {
  try {
    return parse(body);
  } catch (error) {
    if (!(error instanceof NoticeError)) throw error;
    return { code: error.code, path: error.path, found: error.found };
  }
}

const changed = (name: string, change: (event: Record<string, unknown>) => void): string => {
  const event = object(name);
  change(event);
  return JSON.stringify(event);
};

test("every type of event is understood as AWS sends it (S1)", () => {
  expect(Object.fromEntries(SAMPLES.map((name) => [name, meaning(name)]))).toEqual({
    "capacity-reservation-interruption.json": {
      reason: "spot_interruption",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: "2026-11-30T10:01:30.000Z",
      clusterHint: "123456789012/eu-west-1",
    },
    "health-closed.json": {
      reason: "withdrawn",
      machineIds: ["i-0a1b2c3d4e5f60718", "i-0b1b2c3d4e5f60719"],
      deadline: null,
      clusterHint: "123456789012/eu-west-1",
    },
    "health-scheduled-change.json": {
      reason: "scheduled_maintenance",
      machineIds: ["i-0a1b2c3d4e5f60718", "i-0b1b2c3d4e5f60719"],
      deadline: "2026-12-14T09:00:00.000Z",
      clusterHint: "123456789012/eu-west-1",
    },
    "launch-lifecycle-action.json": { reason: null, machineIds: ["i-0a1b2c3d4e5f60718"], deadline: null, clusterHint: "workers" },
    "rebalance-recommendation.json": {
      reason: "node_rebalance",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: null,
      clusterHint: "123456789012/eu-west-1",
    },
    "spot-hibernation.json": {
      reason: "spot_interruption",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: "2026-11-30T10:00:00.000Z",
      clusterHint: "123456789012/eu-west-1",
    },
    "spot-interruption-by-sns.json": {
      reason: "spot_interruption",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: "2026-11-30T10:02:00.000Z",
      clusterHint: "123456789012/eu-west-1",
    },
    "spot-interruption.json": {
      reason: "spot_interruption",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: "2026-11-30T10:02:00.000Z",
      clusterHint: "123456789012/eu-west-1",
    },
    "state-change.json": {
      reason: "instance_state_change",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: "2026-11-30T10:00:00.000Z",
      clusterHint: "123456789012/eu-west-1",
    },
    "terminate-lifecycle-action.json": {
      reason: "instance_state_change",
      machineIds: ["i-0a1b2c3d4e5f60718"],
      deadline: null,
      clusterHint: "workers",
    },
  });
});

test("a notice keeps the message as it came, and the sender's id tells deliveries apart", () => {
  const body = sample("spot-interruption.json");
  expect(recordOfNotice(parse(body))).toEqual({
    id: "notice-1",
    source: "eventbridge",
    dedupeKey: "5f1f9d1e-0001-4d55-9a41-1d1b5f0a0001",
    receivedAt: NOW,
    body,
    outcome: "received",
    machineIds: ["i-0a1b2c3d4e5f60718"],
    deadline: at("2026-11-30T10:02:00Z"),
    reason: "spot_interruption",
  });
});

test("the lead of a spot interruption is configurable, and a sender's clock that is ahead cannot make it longer", () => {
  expect(parse(sample("spot-interruption.json"), { spotLeadMs: 20_000 }).deadline).toBe(at("2026-11-30T10:00:20Z"));
  const ahead = changed("spot-interruption.json", (event) => (event["time"] = "2031-01-01T00:00:00Z"));
  expect(parse(ahead).deadline).toBe(NOW + 120_000);
});

test.each(["stopping", "stopped", "shutting-down", "Terminated", "STOPPING"])("the state %s means that the machine goes", (state) => {
  expect(parse(stateChange({ id: "e", at: NOW, machineId: "i-1234567" }, state)).reason).toBe("instance_state_change");
});

test.each(["pending", "running"])("the state %s is understood and ignored", (state) => {
  expect(recordOfNotice(parse(stateChange({ id: "e", at: NOW, machineId: "i-1234567" }, state))).outcome).toBe("ignored");
});

test("what was composed for the demo is what AWS sends", () => {
  const event = { id: "5f1f9d1e-0001-4d55-9a41-1d1b5f0a0001", at: at("2026-11-30T10:00:00Z"), machineId: "i-0a1b2c3d4e5f60718" };
  expect(Object.keys(JSON.parse(spotInterruptionWarning(event)) as object)).toEqual(Object.keys(object("spot-interruption.json")));
  expect(parse(spotInterruptionWarning(event))).toEqual({
    ...parse(sample("spot-interruption.json")),
    body: spotInterruptionWarning(event),
  });
  expect(parse(rebalanceRecommendation(event)).reason).toBe("node_rebalance");
});

test.each(["", " ", "rebooting", "toString"])("the state %j is of no kind that is known: kept, never acted upon", (state) => {
  const notice = parse(stateChange({ id: "e", at: NOW, machineId: "i-1234567" }, state));
  expect([notice.reason, recordOfNotice(notice).outcome]).toEqual(["unknown_kind", "unknown_kind"]);
});

test("an event of another source or type is kept as unknown, also one named like a method of objects", () => {
  const kinds = [
    { source: "my.app" },
    { source: "constructor" },
    { "detail-type": "EC2 Something Else" },
    { "detail-type": "constructor" },
  ].map((change) => parse(changed("spot-interruption.json", (event) => Object.assign(event, change))));
  expect(kinds.map(({ reason, machineIds }) => ({ reason, machineIds }))).toEqual(
    Array.from({ length: 4 }, () => ({ reason: "unknown_kind", machineIds: [] })),
  );
});

test("maintenance that is closed takes back what was said of the same event", () => {
  expect(subjectOf(parse(sample("health-closed.json")))).toBe(subjectOf(parse(sample("health-scheduled-change.json"))));
  expect(parse(sample("health-closed.json")).dedupeKey).not.toBe(parse(sample("health-scheduled-change.json")).dedupeKey);
});

test("maintenance of another service, or no scheduled change, or closed and of no event, is ignored", () => {
  const health = (change: object): unknown =>
    parse(changed("health-scheduled-change.json", (event) => Object.assign(event["detail"] as object, change))).reason;
  expect([
    health({ statusCode: "closed", eventArn: undefined }),
    health({ service: "RDS" }),
    health({ eventTypeCategory: "issue", startTime: undefined }),
  ]).toEqual([null, null, null]);
});

test("two entities in one event are two machines; one that is resolved, and what is no machine, is left out", () => {
  const body = changed("health-scheduled-change.json", (event) => {
    (event["detail"] as Record<string, unknown>)["affectedEntities"] = [
      { entityValue: "i-0000002" },
      { entityValue: "i-0000001" },
      { entityValue: "i-0000001" },
      { entityValue: "vol-1" },
      { entityValue: "i-0000003", status: "RESOLVED" },
    ];
  });
  expect(parse(body).machineIds).toEqual(["i-0000001", "i-0000002"]);
});

test("resources are never read, whatever they hold", () => {
  for (const resources of [undefined, null, "arn", 7, [{ a: 1 }]]) {
    expect(parse(changed("spot-interruption.json", (event) => (event["resources"] = resources))).machineIds).toEqual([
      "i-0a1b2c3d4e5f60718",
    ]);
  }
});

test("a message that is wrong is refused with the field and what was found", () => {
  const spot = (change: (event: Record<string, unknown>) => void): unknown => refusal(changed("spot-interruption.json", change));
  const detail = (value: unknown): unknown => spot((event) => (event["detail"] = value));
  expect({
    "empty source": spot((event) => (event["source"] = "")),
    "no source": spot((event) => delete event["source"]),
    "no id": spot((event) => delete event["id"]),
    "no time": spot((event) => (event["time"] = "yesterday")),
    "a year only": spot((event) => (event["time"] = "2026")),
    "no detail": detail(undefined),
    "detail is a list": detail([]),
    "no instance-id": detail({ "instance-action": "terminate" }),
    "instance-id is an ARN": detail({ "instance-action": "terminate", "instance-id": "arn:aws:ec2:eu-west-1:1:instance/i-1234567" }),
    "instance-id is a number": detail({ "instance-action": "terminate", "instance-id": 7 }),
    "maintenance without a time": refusal(
      changed("health-scheduled-change.json", (event) => delete (event["detail"] as Record<string, unknown>)["startTime"]),
    ),
    "maintenance on a day that is none": refusal(
      changed(
        "health-scheduled-change.json",
        (event) => ((event["detail"] as Record<string, unknown>)["startTime"] = "Mon, 99 Foo 2026 09:00:00 GMT"),
      ),
    ),
    "not JSON": refusal("{"),
    empty: refusal(""),
    "a list": refusal("[]"),
    null: refusal("null"),
  }).toEqual({
    "empty source": { code: "notice_malformed", path: "source", found: "" },
    "no source": { code: "notice_malformed", path: "source", found: "nothing" },
    "no id": { code: "notice_malformed", path: "id", found: "nothing" },
    "no time": { code: "notice_malformed", path: "time", found: "yesterday" },
    "a year only": { code: "notice_malformed", path: "time", found: "2026" },
    "no detail": { code: "notice_malformed", path: "detail", found: "nothing" },
    "detail is a list": { code: "notice_malformed", path: "detail", found: "[]" },
    "no instance-id": { code: "notice_malformed", path: "detail.instance-id", found: "nothing" },
    "instance-id is an ARN": { code: "notice_malformed", path: "detail.instance-id", found: "arn:aws:ec2:eu-west-1:1:instance/i-1234567" },
    "instance-id is a number": { code: "notice_malformed", path: "detail.instance-id", found: "7" },
    "maintenance without a time": { code: "notice_malformed", path: "detail.startTime", found: "nothing" },
    "maintenance on a day that is none": { code: "notice_malformed", path: "detail.startTime", found: "Mon, 99 Foo 2026 09:00:00 GMT" },
    "not JSON": { code: "notice_malformed", path: "", found: "{" },
    empty: { code: "notice_malformed", path: "", found: "" },
    "a list": { code: "notice_malformed", path: "", found: "[]" },
    null: { code: "notice_malformed", path: "", found: "null" },
  });
});

test("a message that is too long is refused before it is parsed, counted in bytes", () => {
  const long = JSON.stringify({ ...object("spot-interruption.json"), padding: "é".repeat(MAX_NOTICE_BYTES / 2) });
  expect(long.length).toBeLessThan(MAX_NOTICE_BYTES);
  expect(refusal(long)).toEqual({ code: "notice_too_large", path: "", found: `${Buffer.byteLength(long)} bytes` });
});

test("whatever is sent, it is understood wholly or refused with a code, and understood alike twice", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        aBody(SAMPLES.map(sample)),
        fc.jsonValue().map((detail) => JSON.stringify({ ...object("spot-interruption.json"), detail })),
      ),
      (body) => {
        try {
          const notice = parse(body);
          expect(notice.machineIds.every((id) => /^i-[0-9A-Za-z-]{1,64}$/.test(id))).toBe(true);
          expect(notice.machineIds).toEqual([...new Set(notice.machineIds)].toSorted());
          expect(notice.deadline === null || Number.isFinite(notice.deadline)).toBe(true);
          expect(parse(body)).toEqual(notice);
        } catch (error) {
          if (!(error instanceof NoticeError)) throw error;
          expect(error.code).toBe("notice_malformed");
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a message of any depth is a malformed one, not a fault of ours (S1)", () => {
  const deep = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;

  for (const body of [deep, JSON.stringify({ ...object("spot-interruption.json"), detail: 0 }).replace('"detail":0', `"detail":${deep}`)])
    expect(() => parseEventBridge({ body }, { receivedAt: NOW })).toThrow(NoticeError);
});
