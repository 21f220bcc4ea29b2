import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Look, type Said, StandingNotices } from "./standing.ts";

const T = Date.parse("2026-11-30T10:00:00Z");
const said = (change: Partial<Said> = {}): Said => ({
  kind: "spot",
  meaning: "terminate",
  time: T + 120_000,
  document: {},
  isGoing: true,
  ...change,
});
const look = (...all: Said[]): Look => ({ kind: "spot", said: all });
const NOTHING = look();
const FAILED: Look = { kind: "spot", failed: "503" };

/** What is told at each look, five seconds apart. */
function tell(looks: readonly Look[], options?: { readonly goneAfter: number }): readonly string[] {
  const standing = new StandingNotices(options);
  return looks.map((each, index) =>
    standing
      .step(each, T + index * 5_000, index * 5_000)
      .map(({ state, part, seen }) => [state, ...(part === undefined ? [] : [part]), `since ${seen}`].join(" "))
      .join(", "),
  );
}

test("what stands is told once, also when its time slides with each look", () => {
  const sliding = [0, 1, 2, 3].map((index) => look(said({ time: T + 120_000 + index * 5_000 })));
  expect(tell(sliding)).toEqual(["present since 0", "", "", ""]);
});

test("a time that comes nearer is told again, once", () => {
  expect(
    tell([look(said()), look(said({ time: T + 60_000 })), look(said({ time: T + 60_000 })), look(said({ time: T + 90_000 }))]),
  ).toEqual(["present since 0", "present since 5000", "", ""]);
});

test("something else that is said is told; an event that has started has no time any more", () => {
  expect(
    tell([
      look(said()),
      look(said({ meaning: "terminate Started", time: null })),
      look(said({ meaning: "terminate Started", time: null })),
    ]),
  ).toEqual(["present since 0", "present since 5000", ""]);
});

test("what is missing in three looks is gone, and one that comes again is new", () => {
  expect(tell([look(said()), NOTHING, NOTHING, NOTHING, NOTHING, look(said())])).toEqual([
    "present since 0",
    "",
    "",
    "gone since 0",
    "",
    "present since 25000",
  ]);
});

test("looks that failed say nothing: they neither end it nor count", () => {
  expect(tell([look(said()), NOTHING, FAILED, FAILED, NOTHING, look(said()), NOTHING, NOTHING, FAILED, NOTHING])).toEqual([
    "present since 0",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "gone since 0",
  ]);
});

test("a path that answers with the change itself needs no second look", () => {
  expect(tell([look(said()), NOTHING], { goneAfter: 1 })).toEqual(["present since 0", "gone since 0"]);
});

test("of several things under one path each goes for itself, and another path's looks touch none", () => {
  const other: Look = { kind: "rebalance", said: [] };
  const [a, b] = [said({ part: "a" }), said({ part: "b" })];
  expect(tell([look(a, b), other, other, other, look(b), look(b), look(b)])).toEqual([
    "present a since 0, present b since 0",
    "",
    "",
    "",
    "",
    "",
    "gone a since 0",
  ]);
});

test("what stands is bounded, and what is more is named", () => {
  const standing = new StandingNotices();
  const many = Array.from({ length: 100 }, (_, index) => said({ part: String(index) }));
  expect(standing.step(look(...many), T, 0)).toHaveLength(64);
  expect([standing.isFull, standing.standing.length]).toEqual([true, 64]);
});

test("whatever the looks are, what is told alternates: nothing goes that was not told, nothing is told twice alike", () => {
  const aLook = fc.oneof(
    fc.constant(FAILED),
    fc
      .subarray(["a", "b", "c"])
      .chain((parts) =>
        fc
          .tuple(...parts.map((part) => fc.integer({ min: 0, max: 200_000 }).map((ms) => said({ part, time: T + ms }))))
          .map((all) => look(...all)),
      ),
  );
  fc.assert(
    fc.property(fc.array(aLook, { maxLength: 40 }), (looks) => {
      const standing = new StandingNotices();
      const told = new Set<string>();
      for (const [index, each] of looks.entries())
        for (const { part = "", state } of standing.step(each, T + index, index)) {
          if (state === "gone") expect(told.delete(part)).toBe(true);
          else told.add(part);
        }
      expect([...told].toSorted()).toEqual(standing.standing.map(({ part = "" }) => part).toSorted());
    }),
  );
});
