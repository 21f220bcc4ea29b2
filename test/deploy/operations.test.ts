/** docs/operations.md speaks of every reason for which a pool is held, and of every alert. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { HELD } from "../../src/control/status.ts";

const root = join(import.meta.dirname, "..", "..");
const text = readFileSync(join(root, "docs", "operations.md"), "utf8");
const rows = new Map(
  [...text.matchAll(/^\| `(\w+)` \| (.+?) \|(?: (.+?) \|)?$/gm)].map(([, name = "", ...cells]) => [name, cells.filter(Boolean)]),
);

test("each reason for which a pool is held has its row, with what to do, and no row is of another one", () => {
  const reasons = [...rows.keys()].filter((name) => !name.startsWith("Relevo"));
  expect(reasons.toSorted()).toEqual([...HELD].toSorted());
  for (const name of reasons) expect([name, rows.get(name)?.length]).toEqual([name, 2]);
});

test("each alert has its row", () => {
  const alerts = [...readFileSync(join(root, "deploy", "monitoring", "alerts.yaml"), "utf8").matchAll(/alert: (\w+)/g)].map(
    ([, name]) => name,
  );
  expect([...rows.keys()].filter((name) => name.startsWith("Relevo")).toSorted()).toEqual(alerts.toSorted());
});
