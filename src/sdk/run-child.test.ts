/** Children as real processes, bounded in real time (K5, I22). */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { endLeftoverChildren } from "./child-home.ts";
import { readFacts } from "./process-tree.ts";
import { type ChildOptions, type RunningChild, runChild } from "./run-child.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "relevo-run-child-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const BOUNDS = { noProgressMs: 250, waitMs: 250, killAfterMs: 100 };
/** For a child that is to be left alone: others may use the machine, so that it stands still for longer than it means to. */
const PATIENT = { noProgressMs: 5_000, waitMs: 5_000 };
const sh = (script: string, options: ChildOptions = {}): RunningChild => runChild("sh", ["-c", script], { ...BOUNDS, root, ...options });

/** Linux only: elsewhere a process that left the group is not found. */
const onLinux = test.skipIf(process.platform !== "linux");

function isAlive(pid: number): boolean {
  const facts = readFacts(pid);
  return facts !== undefined && !facts.isZombie;
}

/** Pids that a child wrote to its standard output, one a line. */
function pidsIn(text: string): readonly number[] {
  return text.split("\n").filter(Boolean).map(Number);
}

describe("a child's end is told as it was", () => {
  test("it exits, and its progress is the bytes of its progress pipe", async () => {
    const child = sh('printf frame >&3; echo out; echo err >&2; echo "$TMPDIR" > "$TMPDIR/kept"');
    const end = await child.ended;
    expect({ ...end, durationMs: 0 }).toEqual({
      kind: "exited",
      reason: "exit_0",
      sentence: "It exited with 0.",
      code: 0,
      signal: null,
      progress: 5,
      durationMs: 0,
      killed: 0,
      survivors: 0,
      stdout: "out\n",
      stderr: "err\n",
      outputBytes: 8,
      peakMb: null,
    });
    expect([existsSync(child.folder), readdirSync(root)]).toEqual([false, []]);
  });

  test("another code and a program that is not there are failures", async () => {
    const ends = await Promise.all([sh("exit 7").ended, runChild("/nowhere/program", [], { root }).ended]);
    expect(ends.map(({ kind, reason }) => [kind, reason])).toEqual([
      ["failed", "exit_7"],
      ["failed", "not_started"],
    ]);
    expect(readdirSync(root)).toEqual([]);
  });

  test("a SIGKILL from outside is a failure that says so", async () => {
    const child = sh("sleep 30");
    process.kill(child.pid ?? 0, "SIGKILL");
    expect(await child.ended).toMatchObject({ kind: "failed", reason: "signal_SIGKILL", signal: "SIGKILL", survivors: 0 });
  });

  test("its caller ends it, also when it is asked at once", async () => {
    const cancelled = await sh("sleep 30", { signal: AbortSignal.abort() }).ended;
    const ended = await sh("sleep 30").end();
    expect([cancelled.reason, ended.reason]).toEqual(["cancelled", "cancelled"]);
  });
});

describe("progress is work, never liveness (K5)", () => {
  test("a child that talks and answers but does no work is reaped", async () => {
    const end = await sh("while :; do echo I am well; sleep 0.02; done").ended;
    expect(end).toMatchObject({ kind: "reaped", reason: "no_progress", progress: 0, survivors: 0 });
    expect(end.outputBytes).toBeGreaterThan(0);
  });

  test("one that works is left alone for as long as it does", async () => {
    const end = await sh("for i in 1 2 3 4 5 6; do printf x >&3; sleep 0.1; done", PATIENT).ended;
    expect([end.kind, end.progress, end.durationMs > 500]).toEqual(["exited", 6, true]);
  });

  test("what the parent reads out of its output can be progress", async () => {
    const end = await sh("for i in 1 2 3 4; do echo frame; sleep 0.1; done", {
      ...PATIENT,
      onOutput: (chunk) => chunk.toString().split("frame").length - 1,
    }).ended;
    expect([end.kind, end.progress]).toEqual(["exited", 4]);
  });

  test("waiting for something that never comes has its own bound, which saying so again does not prolong", async () => {
    const end = await sh("echo x >&3; while :; do echo wait a video element >&3; sleep 0.05; done", { noProgressMs: 10_000 }).ended;
    expect(end).toMatchObject({ kind: "reaped", reason: "wait_too_long", progress: 2 });
    expect(end.sentence).toMatch(/^It waited \d+ ms for a video element, longer than 250 ms\.$/);
  });

  test("a wait that came to something is over", async () => {
    const end = await sh("echo wait a page >&3; sleep 0.15; printf x >&3; sleep 0.2", { waitMs: 200, noProgressMs: 2_000 }).ended;
    expect([end.kind, end.progress]).toEqual(["exited", 1]);
  });
});

describe("nothing of its tree is left (I22)", () => {
  test("one that ignores SIGTERM is killed", async () => {
    const child = sh('trap "" TERM; while :; do sleep 0.05; done');
    expect(await child.ended).toMatchObject({ kind: "reaped", signal: "SIGKILL", survivors: 0 });
    expect(isAlive(child.pid ?? 0)).toBe(false);
  });

  test("a grandchild goes with a child that is reaped", async () => {
    const end = await sh("sleep 60 & echo $!; wait").ended;
    expect([end.kind, pidsIn(end.stdout).map(isAlive)]).toEqual(["reaped", [false]]);
    expect(end.killed).toBe(2);
  });

  test("a child that forks a grandchild and exits leaves none behind, and its exit counts", async () => {
    const end = await sh("sleep 60 & echo $!").ended;
    expect([end.kind, end.killed, pidsIn(end.stdout).map(isAlive)]).toEqual(["exited", 1, [false]]);
    expect(end.durationMs).toBeLessThan(1_000);
  });

  onLinux("nor one in a session of its own whose parent has exited", async () => {
    const end = await sh("setsid sh -c 'echo $$; sleep 60' & sleep 0.1; exit 3").ended;
    expect([end.reason, end.killed > 0, pidsIn(end.stdout).map(isAlive)]).toEqual(["exit_3", true, [false]]);
  });

  test("a child that fills its pipes is read, and of its output the end is kept", async () => {
    const end = await sh("head -c 3000000 /dev/zero | tr '\\0' a; printf end; printf x >&3", { outputBytes: 100, noProgressMs: 5_000 })
      .ended;
    expect([end.kind, end.outputBytes, end.stdout]).toEqual(["exited", 3_000_003, `${"a".repeat(97)}end`]);
  });

  onLinux("memory of the whole tree can be read, and be a bound", async () => {
    const script = "const held = Buffer.alloc(150e6, 1); setInterval(() => held.length, 1e6)";
    const child = sh(`"${process.execPath}" -e '${script}' & wait`, { noProgressMs: 20_000, memoryMb: 120 });
    const end = await child.ended;
    expect([end.reason, (end.peakMb ?? 0) > 120]).toEqual(["memory", true]);
  });
});

test("a folder that is no folder of this user's own is refused before anything starts", () => {
  const link = join(root, "link");
  symlinkSync(tmpdir(), link);
  expect(() => runChild("true", [], { root: link })).toThrow(expect.objectContaining({ code: "child_root_foreign" }));
});

describe("a former life's children", () => {
  onLinux("are ended and their files removed by the next life, and those of a living process are left alone", async () => {
    const living = sh("sleep 60", { noProgressMs: null });
    const program = new URL("./run-child.ts", import.meta.url).pathname;
    const script = `import { runChild } from ${JSON.stringify(program)};
      const child = runChild("sh", ["-c", "setsid sleep 60 & sleep 61 & touch $TMPDIR/file; echo x >&3; wait"],
        { root: ${JSON.stringify(root)}, onProgress: () => { console.log(child.folder); process.kill(process.pid, "SIGKILL"); } });`;
    const { stdout, signal } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    const folder = stdout.trim();
    expect([signal, existsSync(join(folder, "file"))]).toEqual(["SIGKILL", true]);

    const leftovers = endLeftoverChildren(root);
    expect(leftovers).toEqual({ folders: 1, processes: 3 });
    expect([existsSync(folder), isAlive(living.pid ?? 0)]).toEqual([false, true]);
    await living.end();
  });
});
