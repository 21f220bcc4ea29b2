import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withTables } from "./catalogue.ts";
import { allCheckers } from "./invariants/index.ts";
import { AT_THE_END, PENDING } from "./invariants/pending.ts";

test("the tables of docs/simulation.md are those of the code: npm run simulate:tables writes them", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/simulation.md"), "utf8");
  for (const name of ["faults", "invariants", "pending"]) expect(text).toContain(`<!-- /${name} -->`);
  expect(withTables(text)).toBe(text);
});

test("each invariant I1–I28 is checked, judged at the end, or listed as pending, and only one of these", () => {
  const checked = new Set(allCheckers().map(({ id }) => id));
  const places = (id: string) => [checked.has(id), id in AT_THE_END, id in PENDING].filter(Boolean).length;
  const ids = Array.from({ length: 28 }, (_, index) => `I${index + 1}`);
  expect(ids.filter((id) => places(id) !== 1)).toEqual([]);
});

test("no two checkers have the same id, and each names what it watches", () => {
  const checkers = allCheckers();
  expect(new Set(checkers.map(({ id }) => id)).size).toBe(checkers.length);
  expect(checkers.filter(({ watches }) => watches.length === 0)).toEqual([]);
});
