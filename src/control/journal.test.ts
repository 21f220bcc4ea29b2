import { expect, test } from "vitest";
import { type JournalEntry } from "../server/control-plane.ts";
import { Journal } from "./journal.ts";

const entry = (at: number, pool: string | null): JournalEntry => ({
  at,
  kind: "phase",
  pool,
  subject: "a",
  code: "serving",
  from: null,
  reason: null,
});

test("what happened lately is told again, the newest first: of one pool with what is of none, or all of it", () => {
  const journal = new Journal();
  for (const [at, pool] of [
    [1, "shop/orders"],
    [2, "shop/quotes"],
    [3, null],
    [4, "shop/orders"],
  ] as const)
    journal.tell(entry(at, pool));

  const ats = (query: Parameters<Journal["recent"]>[0]) => journal.recent(query).map(({ at }) => at);
  expect(ats({ limit: 100 })).toEqual([4, 3, 2, 1]);
  expect(ats({ pool: "shop/orders", limit: 100 })).toEqual([4, 3, 1]);
  expect(ats({ pool: "shop/orders", limit: 1 })).toEqual([4]);
});

test("what is kept is bounded: the oldest goes", () => {
  const journal = new Journal();
  for (let at = 1; at <= 1_500; at++) journal.tell(entry(at, "shop/orders"));
  const kept = journal.recent({ limit: 10_000 });
  expect([kept.length, kept[0]?.at, kept.at(-1)?.at]).toEqual([1_000, 1_500, 501]);
});
