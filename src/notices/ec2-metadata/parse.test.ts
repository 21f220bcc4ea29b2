import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NoticeError, subjectOf } from "../notice.ts";
import { MetadataUnreadable } from "../read-metadata.ts";
import { fuzzAgentSource, meaningOf, noticeFrom, samplesIn } from "../testing/agent-report.ts";
import { EC2_METADATA, ec2MetadataSource as source } from "./parse.ts";
import { EC2_ALL_PATHS, readEc2 } from "./read.ts";

const samples = samplesIn(new URL("./samples/", import.meta.url));

test("everything that EC2's metadata says is understood (S1)", () => {
  expect(Object.fromEntries(samples.names.map((name) => [name, meaningOf(source, samples.text(name))]))).toEqual({
    "lifecycle-empty": "unknown_kind",
    "lifecycle-in-service": "null",
    "lifecycle-terminated": "instance_state_change",
    "lifecycle-warm-pool": "instance_state_change",
    maintenance: "scheduled_maintenance 2026-12-07T13:33:21",
    "maintenance-canceled": "withdrawn",
    "maintenance-gone": "withdrawn",
    rebalance: "node_rebalance",
    "spot-gone": "withdrawn",
    "spot-hibernate": "spot_interruption 2026-11-30T10:00:01",
    "spot-stop": "spot_interruption 2026-11-30T10:02:00",
    "spot-terminate": "spot_interruption 2026-11-30T10:02:00",
    "unknown-path": "unknown_kind",
  });
});

test("the machine is known by its instance id, and the same fact again has the same key", () => {
  const first = noticeFrom(source, samples.text("spot-terminate"));
  const again = noticeFrom(source, samples.changed("spot-terminate", { ageMs: 90_000, seenAt: "2026-11-30T10:01:00Z", bootId: null }));
  expect([first.machineIds, first.dedupeKey]).toEqual([
    ["i-0a1b2c3d4e5f60718"],
    "i-0a1b2c3d4e5f60718 spot/instance-action#i-0a1b2c3d4e5f60718 spot/instance-action terminate 1796032920000",
  ]);
  expect(again.dedupeKey).toBe(first.dedupeKey);
});

test("what is gone takes back what was said of the same thing, and nothing else", () => {
  const subject = (name: string): string | undefined =>
    subjectOf({ source: EC2_METADATA, dedupeKey: noticeFrom(source, samples.text(name)).dedupeKey });
  expect(subject("spot-gone")).toBe(subject("spot-terminate"));
  expect(subject("maintenance-gone")).toBe(subject("maintenance"));
  expect(subject("maintenance-canceled")).toBe(subject("maintenance"));
  expect(new Set(["spot-terminate", "maintenance", "rebalance", "lifecycle-terminated"].map(subject)).size).toBe(4);
  expect(noticeFrom(source, samples.text("spot-gone")).dedupeKey).not.toBe(noticeFrom(source, samples.text("spot-terminate")).dedupeKey);
});

test("a clock of EC2 that is ahead makes no deadline later than two minutes after it was seen", () => {
  const ahead = samples.changed("spot-terminate", { document: { action: "terminate", time: "2026-11-30T10:07:00Z" } });
  expect(meaningOf(source, ahead)).toBe("spot_interruption 2026-11-30T10:02:01");
});

test.each([
  ["a node's name for a machine", { providerID: "ip-10-0-0-1.internal" }, "providerID"],
  ["no age", { ageMs: undefined }, "ageMs"],
  ["a time that is none", { document: { action: "terminate", time: "soon" } }, "document.time"],
  ["a document of another kind", { document: [] }, "document"],
])("%s is refused with the field", (_what, change, path) => {
  const body = samples.changed("spot-terminate", change);
  expect(() => noticeFrom(source, body)).toThrow(NoticeError);
  try {
    noticeFrom(source, body);
  } catch (error) {
    expect((error as NoticeError).path).toBe(path);
  }
});

test("whatever is sent, it is understood wholly or refused with a code", () => {
  fuzzAgentSource(source, samples);
});

test("metadata is read as EC2 and its mock write it", () => {
  const read = (path: (typeof EC2_ALL_PATHS)[number], text: string): unknown =>
    readEc2(path, text).map(({ part, meaning, time, isGoing }) => [
      part,
      meaning,
      time === null ? null : new Date(time).toISOString(),
      isGoing,
    ]);
  expect({
    spot: read("spot/instance-action", '{"action":"terminate","time":"2026-11-30T10:02:00Z"}'),
    rebalance: read("events/recommendations/rebalance", '{"noticeTime":"2026-11-30T10:02:00Z"}'),
    maintenance: read(
      "events/maintenance/scheduled",
      '[{"NotBefore":"7 Dec 2026 13:33:21 GMT","Code":"system-reboot","Description":"x","EventId":"e-1","NotAfter":"21 Jan 2027 09:17:23 GMT","State":"active"},{"EventId":"e-2","Code":"system-reboot","State":"completed"}]',
    ),
    none: read("events/maintenance/scheduled", "[]"),
    terminated: read("autoscaling/target-lifecycle-state", "Terminated"),
    inService: read("autoscaling/target-lifecycle-state", "InService"),
    empty: read("autoscaling/target-lifecycle-state", ""),
  }).toEqual({
    spot: [[undefined, "terminate", "2026-11-30T10:02:00.000Z", true]],
    rebalance: [[undefined, "rebalance", "2026-11-30T10:02:00.000Z", false]],
    maintenance: [["e-1", "system-reboot", "2026-12-07T13:33:21.000Z", false]],
    none: [],
    terminated: [[undefined, "Terminated", null, true]],
    inService: [],
    empty: [[undefined, "", null, false]],
  });
});

test("garbage in metadata is unreadable, never something that it said", () => {
  fc.assert(
    fc.property(fc.constantFrom(...EC2_ALL_PATHS), fc.oneof(fc.string(), fc.json()), (path, text) => {
      try {
        readEc2(path, text);
      } catch (error) {
        expect(error).toBeInstanceOf(MetadataUnreadable);
      }
    }),
  );
  for (const path of EC2_ALL_PATHS) expect(() => readEc2(path, "<html>502 Bad Gateway</html>")).toThrow(MetadataUnreadable);
});
