/**
 * `npm run verify`: format, lint, types, boundaries, dead code, in this order, all of them even when one fails. No tests. Prints what failed and nothing
 * else; exit code 1 when anything did.
 *
 * Two of the tools can pass on nothing: dependency-cruiser scans 0 modules when it has no parser, and a lint rule that lost its plugin is silent. So each
 * is first run on seeded violations that it must find.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const bin = (path: string): string => join(root, "node_modules", path);
const OXLINT = bin("oxlint/bin/oxlint");
const CRUISE = bin("dependency-cruiser/bin/dependency-cruise.mjs");
/** Fewer modules than this under src/ means that the tool did not see them. */
const MODULES_AT_LEAST = 60;

interface Check {
  readonly name: string;
  /** The problem as text, or undefined when all is well. */
  run(): string | undefined;
}

const checks: readonly Check[] = [
  { name: "format", run: format },
  { name: "lint sees seeded violations", run: seededLint },
  { name: "lint", run: () => failure(node(OXLINT, ["--type-aware", "--deny-warnings"])) },
  { name: "types", run: () => failure(node(bin("typescript/bin/tsc"), ["-p", "."])) },
  { name: "boundaries see seeded violations", run: seededBoundaries },
  { name: "boundaries", run: boundaries },
  { name: "dead code", run: () => failure(node(bin("knip/bin/knip.js"), ["--no-progress"])) },
];

interface Run {
  readonly status: number | null;
  readonly output: string;
  readonly stdout: string;
}

function node(script: string, args: readonly string[], cwd: string = root): Run {
  const run = spawnSync(process.execPath, [script, ...args], {
    cwd,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" },
  });
  if (run.error) throw run.error;
  return { status: run.status, output: `${run.stdout}${run.stderr}`, stdout: run.stdout };
}

function failure(run: Run): string | undefined {
  return run.status === 0 ? undefined : run.output.trim() || `exit code ${run.status}`;
}

/** The files alone: what the formatter would change is shown by running it. */
function format(): string | undefined {
  const run = node(bin("@biomejs/biome/bin/biome"), ["format", "--colors=off", "--max-diagnostics=none"]);
  const files = [...run.output.matchAll(/^(\S+) format ━/gm)].map(([, file]) => file);
  return failure(run) && `${files.length > 0 ? files.join("\n") : run.output}\nrun: npm run format`;
}

function boundaries(): string | undefined {
  const run = node(CRUISE, ["src", "--config", ".dependency-cruiser.mjs", "--output-type", "json"]);
  const { summary } = parseCruise(run);
  const found = summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`);
  if (summary.totalCruised < MODULES_AT_LEAST)
    found.push(`only ${summary.totalCruised} modules were seen, at least ${MODULES_AT_LEAST} are there`);
  return found.length === 0 ? undefined : found.join("\n");
}

interface Cruise {
  readonly summary: {
    readonly totalCruised: number;
    readonly violations: readonly { readonly rule: { readonly name: string }; readonly from: string; readonly to: string }[];
  };
}

function parseCruise(run: Run): Cruise {
  try {
    return JSON.parse(run.stdout) as Cruise;
  } catch {
    throw new Error(`dependency-cruiser printed no JSON:\n${run.output}`);
  }
}

/** One value and one type import outwards, the simulator in production code, an unknown folder: all must be named. */
function seededBoundaries(): string | undefined {
  return inSeed(
    {
      "package.json": '{ "name": "seed", "type": "module" }',
      "src/kernel/a.ts": 'import { b } from "../model/b.ts";\nexport const a = b;\n',
      "src/model/b.ts": 'import type { C } from "../store/sqlite.ts";\nexport const b: C = 1;\n',
      "src/store/sqlite.ts": 'export type C = number;\nexport { d } from "../sim/d.ts";\n',
      "src/sim/d.ts": "export const d = 1;\n",
      "src/odd/e.ts": 'import { d } from "../sim/d.ts";\nexport const e = d;\n',
    },
    (seed) => {
      const { summary } = parseCruise(
        node(CRUISE, ["src", "--config", join(root, ".dependency-cruiser.mjs"), "--output-type", "json"], seed),
      );
      const found = new Set(summary.violations.map(({ rule }) => rule.name));
      return missing(["inward-kernel", "inward-model", "inward-store", "sim-only-from-cli-and-tests", "known-folder"], (name) =>
        found.has(name),
      );
    },
  );
}

function seededLint(): string | undefined {
  return inSeed(
    {
      "package.json": '{ "name": "seed", "type": "module" }',
      "tsconfig.json":
        '{ "compilerOptions": { "strict": true, "module": "nodenext", "target": "esnext", "noEmit": true, "allowImportingTsExtensions": true } }',
      "src/a.ts":
        'import { b } from "./b.ts";\nasync function f(): Promise<number> {\n  return b;\n}\nf();\nexport const a = Date.now() + b;\n',
      "src/b.ts": 'import { a } from "./a.ts";\nexport const b: number = a + 1;\nexport const at = new Date();\n',
      "src/long.ts": `export const n = 1;\n${"// a line\n".repeat(500)}`,
    },
    (seed) => {
      const { output } = node(OXLINT, ["--type-aware", "--config", join(root, ".oxlintrc.json"), "src"], seed);
      return missing(
        ["no-floating-promises", "no-cycle", "Date.now hides time", "new Date() hides time", "max-lines"],
        (name) => output.includes(name),
        output,
      );
    },
  );
}

function missing(wanted: readonly string[], isFound: (name: string) => boolean, output = ""): string | undefined {
  const absent = wanted.filter((name) => !isFound(name));
  return absent.length === 0 ? undefined : `not found in the seed: ${absent.join(", ")}\n${output}`;
}

function inSeed(files: Readonly<Record<string, string>>, check: (seed: string) => string | undefined): string | undefined {
  const seed = mkdtempSync(join(tmpdir(), "relevo-verify-"));
  try {
    symlinkSync(join(root, "node_modules"), join(seed, "node_modules"));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(seed, path)), { recursive: true });
      writeFileSync(join(seed, path), text);
    }
    return check(seed);
  } finally {
    rmSync(seed, { recursive: true, force: true });
  }
}

/** `npm run verify -- lint types` runs these alone. */
const only = process.argv.slice(2);
const failed: string[] = [];
for (const check of checks) {
  if (only.length > 0 && !only.some((name) => check.name.startsWith(name))) continue;
  const started = performance.now();
  const problem = check.run();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(
    `${problem === undefined ? "ok    " : "FAILED"}  ${check.name} (${seconds} s)\n${problem === undefined ? "" : `${problem}\n`}`,
  );
  if (problem !== undefined) failed.push(check.name);
}
if (failed.length > 0) {
  process.stdout.write(`verify failed: ${failed.join(", ")}\n`);
  process.exitCode = 1;
}
