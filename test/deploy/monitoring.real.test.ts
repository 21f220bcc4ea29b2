/** promtool, of Debian's prometheus: the rules are valid, fire when they should and not otherwise; the dashboard's queries parse. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { stringify } from "yaml";

const folder = join(import.meta.dirname, "..", "..", "deploy", "monitoring");
const promtool = async (...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)("promtool", args, { cwd: folder })).stdout;

test("the alert rules fire when they should, and not otherwise", async () => {
  expect(await promtool("check", "rules", "alerts.yaml")).toMatch(/SUCCESS: \d+ rules found/);
  expect(await promtool("test", "rules", "alerts.test.yaml")).toContain("SUCCESS");
});

test("the queries of the dashboard parse", async () => {
  const { panels } = JSON.parse(readFileSync(join(folder, "dashboard.json"), "utf8")) as { panels: { targets: { expr: string }[] }[] };
  const filled = panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "5m").replaceAll("$pool", ".*")),
  );
  const temporary = mkdtempSync(join(tmpdir(), "relevo-dashboard-"));
  try {
    const file = join(temporary, "queries.yaml");
    writeFileSync(
      file,
      stringify({ groups: [{ name: "dashboard", rules: filled.map((expr, index) => ({ record: `panel:${index}`, expr })) }] }),
    );
    expect(await promtool("check", "rules", file)).toContain(`SUCCESS: ${filled.length} rules found`);
  } finally {
    rmSync(temporary, { recursive: true });
  }
});
