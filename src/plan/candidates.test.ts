import { describe, expect, test } from "vitest";
import { at, instance, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { candidateGate, fillGate } from "./candidates.ts";
import type { PoolSnapshot } from "./snapshot.ts";

const failed = (time: string, replaces: string | null, failure = "node_about_to_go"): PoolSnapshot["failures"][number] => ({
  instance: `x-${time}`,
  at: at(time),
  failure,
  replaces,
  purpose: replaces === null ? "fill" : "replace",
});
const until = (gate: ReturnType<typeof candidateGate>): string =>
  gate.open ? "open" : `${gate.reason.code} ${gate.until === null ? "" : (gate.until - NOON) / 1_000}`.trim();

describe("where machines go, tries are spread over the time until they are gone (D14)", () => {
  test("ten seconds, then three times as long after each; the number of tries is the same", () => {
    const gates = (times: readonly string[], now: string) =>
      until(candidateGate(poolOf({}, [serving()], { failures: times.map((time) => failed(time, "a")) }), "a", at(now)));
    expect(gates(["12:00:00"], "12:00:09")).toBe("candidate_backoff 10");
    expect(gates(["12:00:00"], "12:00:10")).toBe("open");
    expect(gates(["12:00:00", "12:00:10"], "12:00:11")).toBe("candidate_backoff 40");
    expect(gates(["12:00:00", "12:00:10", "12:00:40"], "12:00:41")).toBe("candidate_backoff 130");
    expect(gates(["12:00:00", "12:00:10", "12:00:40", "12:02:10"], "12:02:11")).toBe("candidates_held 600");
  });

  test("of several that failed at one moment it does not matter which is seen first (I17)", () => {
    const going = { ...failed("12:00:00", "a"), instance: "x-2" };
    const late = { ...failed("12:00:00", "a", "not_ready_in_time"), instance: "x-1" };
    const gate = (failures: PoolSnapshot["failures"]) => until(candidateGate(poolOf({}, [serving()], { failures }), "a", at("12:00:01")));
    expect([gate([going, late]), gate([late, going])]).toEqual(["candidate_backoff 30", "candidate_backoff 30"]);
  });

  test("another failure keeps its short pause", () => {
    const failures = [failed("12:00:00", "a", "not_ready_in_time")];
    expect(until(candidateGate(poolOf({}, [serving()], { failures }), "a", NOON))).toBe("candidate_backoff 1");
  });
});

describe("candidates for places that nobody left have their failures in common (D14, I18)", () => {
  const twelve = Array.from({ length: 12 }, () => failed("12:00:00", null));
  const coming = (count: number) =>
    Array.from({ length: count }, (_, index) => instance("preparing", { id: `c-${index}`, record: { ordinal: index } }));
  const proof = serving({ id: "p", record: { ordinal: 11, createdAt: at("12:00:10") } });
  const gate = (failures: PoolSnapshot["failures"], now: string, instances: PoolSnapshot["instances"] = [], begun = 0) =>
    until(fillGate(poolOf({ desired: 12, max: 14 }, instances, { failures }), begun, at(now)));

  test("a fleet whose twelve candidates failed together goes on after one pause, one ahead of the others", () => {
    expect(gate(twelve, "12:00:09")).toBe("candidate_backoff 10");
    expect(gate(twelve, "12:00:10")).toBe("open");
    expect(gate(twelve, "12:00:10", [], 1)).toBe("candidates_few");
    expect(gate(twelve, "12:00:10", coming(1))).toBe("candidates_few");
  });

  test("when that one serves the others follow, so many at once that no more fail than may", () => {
    expect(gate(twelve, "12:00:40", [proof])).toBe("open");
    expect(gate(twelve, "12:00:40", [proof, ...coming(2)], 2)).toBe("open");
    expect(gate(twelve, "12:00:40", [proof, ...coming(2)], 3)).toBe("candidates_few");
  });

  test("what fails after that counts one by one, until no more are tried", () => {
    const more = ["12:00:10", "12:00:40", "12:02:10"].map((time) => failed(time, null));
    expect(gate([...twelve, ...more.slice(0, 1)], "12:00:39")).toBe("candidate_backoff 40");
    expect(gate([...twelve, ...more.slice(0, 2)], "12:02:10")).toBe("open");
    expect(gate([...twelve, ...more], "12:02:11")).toBe("candidates_held 600");
  });

  test("a single failure limits nobody else", () => {
    expect(gate([failed("12:00:00", null)], "12:00:10", coming(11))).toBe("open");
  });
});
