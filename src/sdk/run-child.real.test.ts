/** Many children one after the other: what a worker does all day (I22). */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../kernel/system.ts";
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

test("a child that answers each health check and does no work is reaped all the same (K5)", async () => {
  const script = `
    const server = require("node:http").createServer((_, response) => response.end("ok"));
    server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;
  let port: number | undefined;
  const child = runChild(process.execPath, ["-e", script], {
    noProgressMs: 3_000,
    onOutput: (chunk) => {
      port ??= Number(chunk.toString());
      return 0;
    },
  });
  let isOver = false;
  void child.ended.finally(() => (isOver = true));
  await expect.poll(() => port, { timeout: 3_000 }).toBeGreaterThan(0);
  const answers: number[] = [];
  while (!isOver) {
    const status = await fetch(`http://127.0.0.1:${port}/health`).then(
      ({ status: code }) => code,
      () => 0,
    );
    if (!isOver) answers.push(status);
    await systemClock.sleep(50);
  }
  expect(await child.ended).toMatchObject({ kind: "reaped", reason: "no_progress", progress: 0, survivors: 0 });
  expect(answers.filter((status) => status === 200).length).toBeGreaterThan(10);
});
