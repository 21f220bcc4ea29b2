import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NoticeError } from "../notice.ts";
import { aBody } from "../testing/fuzz.ts";
import { isOfAutoScaling, lifecycleActionOf, parseAutoScaling } from "./parse.ts";

const FOLDER = new URL("./samples/", import.meta.url);
const SAMPLES = readdirSync(FOLDER).toSorted();
const sample = (name: string): string => readFileSync(new URL(name, FOLDER), "utf8");
const EVENT = readFileSync(new URL("../eventbridge/samples/terminate-lifecycle-action.json", import.meta.url), "utf8");

const TERMINATING = {
  dedupeKey: "87654321-4321-4321-4321-210987654321",
  reason: "instance_state_change",
  machineIds: ["i-0a1b2c3d4e5f60718"],
  deadline: null,
  clusterHint: "workers",
};

test("what a group sends straight to a queue is understood, wrapped or not (S1)", () => {
  expect(Object.fromEntries(SAMPLES.map((name) => [name, parseAutoScaling({ body: sample(name) })]))).toEqual({
    "launching.json": { ...TERMINATING, reason: null },
    "terminating.json": TERMINATING,
    "terminating-by-sns.json": TERMINATING,
    "terminating-wrapped.json": TERMINATING,
    "test-notification.json": {
      dedupeKey: "test b5f2a3c1-1111-4444-8888-aaaaaaaaaaaa",
      reason: null,
      machineIds: [],
      deadline: null,
      clusterHint: "workers",
    },
  });
});

test("a transition that is not known is kept as unknown", () => {
  const body = sample("terminating.json").replace("EC2_INSTANCE_TERMINATING", "EC2_INSTANCE_SLEEPING");
  expect(parseAutoScaling({ body }).reason).toBe("unknown_kind");
});

test("what a group sends itself is told from what EventBridge sends", () => {
  expect(SAMPLES.map((name) => isOfAutoScaling(sample(name)))).toEqual(SAMPLES.map(() => true));
  expect([EVENT, "{", "", "{}", JSON.stringify({ Message: EVENT })].map(isOfAutoScaling)).toEqual([false, false, false, false, false]);
});

test("a stored message gives what its hook must be told by, whichever way it came; a launch has nothing to tell", () => {
  const action = {
    group: "workers",
    hook: "drain",
    token: "87654321-4321-4321-4321-210987654321",
    machineId: "i-0a1b2c3d4e5f60718",
    sentAt: Date.parse("2026-11-30T10:00:00Z"),
  };
  expect(
    [EVENT, ...["terminating.json", "terminating-wrapped.json", "terminating-by-sns.json"].map(sample)].map(lifecycleActionOf),
  ).toEqual([action, action, action, action]);
  expect([sample("launching.json"), sample("test-notification.json"), "{", "null"].map(lifecycleActionOf)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("whatever is sent, it is understood wholly or refused with a code", () => {
  fc.assert(
    fc.property(aBody(SAMPLES.map(sample)), (body) => {
      lifecycleActionOf(body);
      try {
        expect(parseAutoScaling({ body }).machineIds.every((id) => /^i-[0-9A-Za-z-]{1,64}$/.test(id))).toBe(true);
      } catch (error) {
        if (!(error instanceof NoticeError)) throw error;
        expect(error.code).toBe("notice_malformed");
      }
    }),
    { numRuns: 1_000 },
  );
});
