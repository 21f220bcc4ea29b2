/** What a run gave, kept with what it was run on, as `docs/evidence/NAME.json`. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { arch, cpus, platform } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");
const EVIDENCE = join(ROOT, "docs", "evidence");

/** Which program it was, when and where. Asked before a long run: the tree may change meanwhile. */
export interface Circumstances {
  readonly commit: string;
  readonly uncommittedChanges: boolean;
  readonly at: string;
  readonly node: string;
  readonly machine: string;
}

export function circumstances(at: Date): Circumstances {
  return {
    commit: git("rev-parse", "HEAD"),
    // What an earlier run kept is no change of the program.
    uncommittedChanges: git("status", "--porcelain", "--", ".", ":!docs/evidence") !== "",
    at: at.toISOString(),
    node: process.version,
    machine: `${platform()}-${arch()}, ${cpus().length} cores`,
  };
}

/** Returns where it is. */
export function keepEvidence(name: string, under: Circumstances, result: object): string {
  mkdirSync(EVIDENCE, { recursive: true });
  const path = join(EVIDENCE, `${name}.json`);
  writeFileSync(path, `${JSON.stringify({ ...under, ...result }, null, 2)}\n`);
  return path;
}

function git(...args: string[]): string {
  const run = spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`git ${args.join(" ")} failed: ${run.stderr}`);
  return run.stdout.trim();
}
