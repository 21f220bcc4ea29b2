import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import type { DemandReading } from "../model/demand.ts";
import { type Believed, type Expected, judgeReading, troubleOfError } from "./validity.ts";

const HOUR = 3_600_000;
const NOW = Date.UTC(2030, 0, 1, 12);

function reading(more: Partial<Record<keyof DemandReading, unknown>> = {}): DemandReading {
  return {
    backlog: 12,
    inFlight: 3,
    oldestAgeMs: 4_000,
    flow: "queue/captures",
    valueAt: null,
    sourceNow: null,
    ...more,
  } as DemandReading;
}

function judge(found: DemandReading, more: Partial<Expected> = {}) {
  return judgeReading(found, { flow: "queue/captures", maxAgeMs: 60_000, former: null, at: 1_000, ...more });
}

function codeOf(found: DemandReading, more: Partial<Expected> = {}): string {
  const judged = judge(found, more);
  return "trouble" in judged ? judged.trouble.code : "valid";
}

function believed(found: DemandReading, firstSeen = 0): Believed {
  return { reading: found, firstSeen };
}

test("what a source tells is believed as it is: whole or not, nothing at all, without what it does not know", () => {
  for (const found of [reading(), reading({ backlog: 0, oldestAgeMs: null }), reading({ backlog: 0.5, inFlight: null })])
    expect(judge(found)).toEqual({ valid: { reading: found, firstSeen: 1_000 } });
});

const noNumbers: [string, unknown, string][] = [
  ["NaN", Number.NaN, "not_a_number"],
  ["null", null, "not_a_number"],
  ["undefined", undefined, "not_a_number"],
  ["text", "12", "not_a_number"],
  ["an object", {}, "not_a_number"],
  ["a number without end", Number.POSITIVE_INFINITY, "infinite"],
  ["more than anybody can have", 1e300, "infinite"],
  ["minus one", -1, "negative"],
  ["minus infinity", Number.NEGATIVE_INFINITY, "infinite"],
];
test.each(noNumbers)("%s is trouble and never a zero, whichever number it is (K11)", (_what, value, code) => {
  expect(codeOf(reading({ backlog: value }))).toBe(code);
  if (value !== null) expect(codeOf(reading({ oldestAgeMs: value }))).toBe(code);
  if (value !== null) expect(codeOf(reading({ inFlight: value }))).toBe(code);
});

test("minus zero is zero", () => expect(codeOf(reading({ backlog: -0 }))).toBe("valid"));

test("another type than before is told as that; what is taken does not vanish from the sum", () => {
  const former = believed(reading());
  expect(judge(reading({ backlog: "12" }), { former })).toEqual({
    trouble: { code: "type_changed", detail: 'backlog was a number and is the text "12"' },
  });
  expect(codeOf(reading({ backlog: null }), { former })).toBe("type_changed");
  expect(codeOf(reading({ backlog: Number.NaN }), { former })).toBe("not_a_number");
  expect(judge(reading({ inFlight: null }), { former })).toEqual({
    trouble: { code: "type_changed", detail: "in flight was a number (3) and is not told any more" },
  });
  expect(codeOf(reading({ oldestAgeMs: null }), { former })).toBe("valid");
});

test("another flow's backlog is refused, also when the pool's own has none (K1)", () => {
  expect(judge(reading({ flow: "queue/captures-eu" }))).toEqual({
    trouble: { code: "other_flow", detail: "it is the backlog of queue/captures-eu, and the workers take queue/captures" },
  });
  expect(codeOf(reading({ flow: "queue/captures-eu" }), { flow: null })).toBe("valid");
});

test.each([-5, 5])("a source whose clock is %d minutes off is believed by its own clock", (minutes) => {
  const theirs = NOW + minutes * 60_000;
  expect(codeOf(reading({ valueAt: theirs - 59_000, sourceNow: theirs }))).toBe("valid");
  expect(judge(reading({ valueAt: theirs - 61_000, sourceNow: theirs }))).toEqual({
    trouble: { code: "stale", detail: "its value is 1m1s old, 1m are allowed" },
  });
  // A clock that was set: the value is of their future.
  expect(codeOf(reading({ valueAt: theirs + HOUR, sourceNow: theirs }))).toBe("valid");
});

test("a source without a clock of its own is stale when the same time of the value is seen for too long", () => {
  const first = judge(reading({ valueAt: NOW - HOUR }), { at: 1_000 });
  expect(first).toMatchObject({ valid: { firstSeen: 1_000 } });
  const former = "valid" in first ? first.valid : null;

  expect(codeOf(reading({ valueAt: NOW - HOUR }), { at: 61_000, former })).toBe("valid");
  expect(codeOf(reading({ valueAt: NOW - HOUR }), { at: 61_001, former })).toBe("stale");
  expect(codeOf(reading({ valueAt: NOW - HOUR + 1 }), { at: 61_001, former })).toBe("valid");
});

test("a time that is no number is no time", () => {
  expect(codeOf(reading({ valueAt: Number.NaN, sourceNow: NOW }))).toBe("not_a_number");
  expect(codeOf(reading({ valueAt: NOW, sourceNow: Number.NaN }))).toBe("not_a_number");
});

test("what an adapter throws is trouble by its code; anything else is a source that cannot be reached", () => {
  const refused = new RelevoError("demand_credentials_refused", "The token is refused.", { found: "status 401" });
  expect(troubleOfError(refused)).toEqual({ code: "credentials_refused", detail: "The token is refused: status 401" });
  expect(troubleOfError(new RelevoError("demand_partial", "2 of 3 partitions did not answer."))).toMatchObject({ code: "partial" });
  expect(troubleOfError(new RelevoError("something_else", "No."))).toEqual({ code: "unreachable", detail: "No" });
  expect(troubleOfError(new Error("socket hang up"))).toEqual({ code: "unreachable", detail: "socket hang up" });
  expect(troubleOfError("x".repeat(1_000)).detail).toHaveLength(300);
});
