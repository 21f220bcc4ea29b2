/** What is made of a row, and of a query. */
import { expect, test } from "vitest";
import { judgeReading } from "../validity.ts";
import { readingOf, statementOf } from "./adapter.ts";

const judge = (row: Readonly<Record<string, unknown>>, flow: string | null = null) => {
  const judged = judgeReading(readingOf([row]), { flow, maxAgeMs: 60_000, former: null, at: 0 });
  return "valid" in judged ? judged.valid.reading : judged.trouble.code;
};

test("a row with all that can be known (K1)", () => {
  const row = { backlog: 42, in_flight: 3, oldest_age_seconds: 1.5, flow: "orders" };
  expect(judge(row, "orders")).toEqual({
    backlog: 42,
    inFlight: 3,
    oldestAgeMs: 1_500,
    flow: "orders",
    valueAt: null,
    sourceNow: null,
  });
  expect(judge(row, "captures")).toBe("other_flow");
});

test("what a query does not say is not known, and without a flow it is nobody's", () => {
  expect(judge({ backlog: 0 })).toMatchObject({ backlog: 0, inFlight: null, oldestAgeMs: null });
  expect(judge({ backlog: 0, in_flight: null, oldest_age_seconds: null, flow: null })).toMatchObject({ inFlight: null, oldestAgeMs: null });
  expect(judge({ backlog: 0 }, "orders")).toBe("other_flow");
});

test.each([
  [{ backlog: null }, "not_a_number"],
  [{ backlog: Number.NaN }, "not_a_number"],
  [{ backlog: "12" }, "not_a_number"],
  [{ backlog: true }, "not_a_number"],
  [{ backlog: new Date(0) }, "not_a_number"],
  [{ backlog: Number.POSITIVE_INFINITY }, "infinite"],
  [{ backlog: -1 }, "negative"],
  [{ backlog: 1, in_flight: "x" }, "not_a_number"],
  [{ backlog: 1, in_flight: -1 }, "negative"],
  [{ backlog: 1, oldest_age_seconds: "1 hour" }, "not_a_number"],
  [{ backlog: 1, oldest_age_seconds: Number.NaN }, "not_a_number"],
  [{ backlog: 1, oldest_age_seconds: -5 }, "negative"],
])("%j is no demand: %s (K11)", (row, code) => {
  expect(judge(row)).toBe(code);
});

test("no row, several rows, and a row without a backlog are no zero", () => {
  expect(() => readingOf([])).toThrow(expect.objectContaining({ code: "demand_missing" }));
  expect(() => readingOf([{ backlog: 1 }, { backlog: 2 }])).toThrow(expect.objectContaining({ code: "demand_partial" }));
  expect(() => readingOf([{ count: 1 }])).toThrow(expect.objectContaining({ code: "demand_missing", found: "count" }));
});

test("a query is the inside of ours, whatever it ends with", () => {
  const inside = "SELECT * FROM (SELECT 1 AS backlog\n) AS demand LIMIT 2";
  expect(statementOf("SELECT 1 AS backlog")).toBe(inside);
  expect(statementOf(" SELECT 1 AS backlog;; \n")).toBe(inside);
  expect(statementOf("SELECT 1 AS backlog -- all")).toBe("SELECT * FROM (SELECT 1 AS backlog -- all\n) AS demand LIMIT 2");
});
