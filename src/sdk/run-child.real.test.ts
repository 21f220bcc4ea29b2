/** Many children one after the other: what a worker does all day (I22). */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runChild } from "./run-child.ts";

test.skipIf(process.platform !== "linux")("five hundred children leak neither descriptor nor folder nor process (I22)", async () => {
  const root = mkdtempSync(join(tmpdir(), "relevo-run-child-"));
  const end = (script: string) => runChild("sh", ["-c", script], { root, noProgressMs: 20_000 }).ended;
  const open = (): number => readdirSync("/proc/self/fd").length;
  try {
    await end("true");
    const before = open();
    const left: number[] = [];
    let begun = 0;
    const lane = async (): Promise<void> => {
      while (begun++ < 500) {
        const { kind, survivors } = await end(begun % 10 === 0 ? "setsid sleep 60 & exit 0" : "printf x >&3");
        expect(kind).toBe("exited");
        left.push(survivors);
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    expect([left.length, left.filter((each) => each > 0), open() - before, readdirSync(root)]).toEqual([500, [], 0, []]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
