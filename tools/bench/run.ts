/**
 * `npm run bench [-- NAME…] [--list]`: runs the benchmarks of bench/ one after the other, each in a process of its own. A benchmark prints one JSON
 * document on stdout and what it does meanwhile on stderr; both are passed on. `bench/NAME.ts`; folders under bench/ hold what they share.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const names = (existsSync(join(root, "bench")) ? readdirSync(join(root, "bench")) : [])
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  .map((file) => file.slice(0, -".ts".length))
  .toSorted();
/** Run within another one, unless they are named. */
const PARTS: readonly string[] = ["scaling-pools"];
const wanted = process.argv.slice(2);

if (wanted.includes("--list")) {
  process.stdout.write(names.map((name) => `${name}\n`).join(""));
} else if (wanted.includes("--help") || wanted.includes("-h")) {
  process.stdout.write(`npm run bench [-- NAME…] [--list]: all benchmarks, or those that are named: ${names.join(", ")}\n`);
} else {
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`no such benchmark: ${unknown.join(", ")}; there are: ${names.join(", ")}\n`);
    process.exitCode = 2;
  } else runAll(wanted.length > 0 ? wanted : names.filter((name) => !PARTS.includes(name)));
}

function runAll(chosen: readonly string[]): void {
  for (const name of chosen) {
    process.stderr.write(`bench ${name}\n`);
    const run = spawnSync(process.execPath, [join(root, "bench", `${name}.ts`)], { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
    if (run.status === 0) continue;
    process.stderr.write(`bench ${name} failed (${run.status ?? run.signal})\n`);
    process.exitCode = 1;
  }
}
