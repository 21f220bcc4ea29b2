import * as fc from "fast-check";
import { expect, test } from "vitest";
import { noticeFrom, fuzzAgentSource, meaningOf, samplesIn } from "../testing/agent-report.ts";
import { NoticeError } from "../notice.ts";
import { MetadataUnreadable } from "../read-metadata.ts";
import { gcpSource as source } from "./parse.ts";
import { GCP_ALL_PATHS, readGcp } from "./read.ts";

const samples = samplesIn(new URL("./samples/", import.meta.url));

test("everything that GCP's metadata says is understood (S1)", () => {
  expect(Object.fromEntries(samples.names.map((name) => [name, meaningOf(source, samples.text(name))]))).toEqual({
    migrate: "null",
    preempted: "spot_interruption 2026-11-30T10:00:31",
    "preempted-gone": "withdrawn",
    terminate: "scheduled_maintenance 2026-11-30T10:01:01",
    "terminate-gone": "withdrawn",
    "unknown-value": "unknown_kind",
  });
});

test("a preemption counts from when it was seen, however long the way to the controller was", () => {
  expect(meaningOf(source, samples.changed("preempted", { ageMs: 20_000 }))).toBe("spot_interruption 2026-11-30T10:00:11");
});

test("the lead of spot in general makes a preemption's shorter, never longer", () => {
  expect([120_000, 10_000].map((spotLeadMs) => meaningOf(source, samples.text("preempted"), { spotLeadMs }))).toEqual([
    "spot_interruption 2026-11-30T10:00:31",
    "spot_interruption 2026-11-30T10:00:11",
  ]);
});

test("a machine that was started again under its name may be preempted again; an agent that was started again says the same", () => {
  const key = (change: object): string => noticeFrom(source, samples.changed("preempted", { ...change })).dedupeKey;
  expect(key({ seenAt: "2026-11-30T10:00:09Z" })).toBe(key({}));
  expect(key({ bootId: "another" })).not.toBe(key({}));
  expect(noticeFrom(source, samples.text("preempted")).machineIds).toEqual(["gce://shop-prod/europe-west1-b/gke-workers-1"]);
});

test("whatever is sent, it is understood wholly or refused with a code", () => {
  fuzzAgentSource(source, samples);
  expect(() => noticeFrom(source, samples.changed("preempted", { document: { a: 1 } }))).toThrow(NoticeError);
});

test("metadata is read as the server writes it", () => {
  expect([
    readGcp("instance/preempted", "FALSE"),
    readGcp("instance/maintenance-event", "NONE\n"),
    readGcp("instance/preempted", "TRUE").map(({ isGoing }) => isGoing),
    readGcp("instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE").map(({ isGoing }) => isGoing),
    readGcp("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE").map(({ isGoing }) => isGoing),
  ]).toEqual([[], [], [true], [false], [true]]);
  fc.assert(
    fc.property(fc.constantFrom(...GCP_ALL_PATHS), fc.string(), (path, text) => {
      try {
        readGcp(path, text);
      } catch (error) {
        expect(error).toBeInstanceOf(MetadataUnreadable);
      }
    }),
  );
  for (const text of ["", "<html>", "yes"]) expect(() => readGcp("instance/preempted", text)).toThrow(MetadataUnreadable);
});
