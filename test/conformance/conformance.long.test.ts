/** A real API server still answers as was recorded. `npm run kubernetes:build` makes it; `node test/conformance/record.ts` records anew. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Recording } from "./case.ts";
import { differences } from "./compare.ts";
import { startReal } from "./real.ts";
import { runAll } from "./run-all.ts";

test("the recorded answers are those of a real API server", async () => {
  const recorded = JSON.parse(readFileSync(join(import.meta.dirname, "recorded.json"), "utf8")) as Recording;
  const cluster = await startReal();
  const answers = await runAll({ url: cluster.url, token: "admin-token" }).finally(() => cluster.stop());

  expect(differences(recorded, JSON.parse(JSON.stringify(answers)) as Recording)).toEqual([]);
});
