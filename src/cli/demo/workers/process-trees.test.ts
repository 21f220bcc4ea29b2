import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import { cpuBetween, POOL_MARK, usageOf } from "./process-trees.ts";

const children: ReturnType<typeof spawn>[] = [];
afterEach(() => {
  for (const child of children.splice(0)) if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
});

/** A parent whose child has no mark of its own, and that tells when both run. */
async function startTree(pool: string): Promise<void> {
  const inner = "setInterval(() => undefined, 1000); process.send?.('up')";
  const outer = `const child = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(inner)}], { env: {}, stdio: ["ignore", "ignore", "ignore", "ipc"] });
    child.once("message", () => process.stdout.write("up")); setInterval(() => undefined, 1000)`;
  const child = spawn(process.execPath, ["-e", outer], {
    env: { ...process.env, [POOL_MARK]: pool },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  children.push(child);
  if (child.stdout) await once(child.stdout, "data");
}

describe.runIf(process.platform === "linux")("process trees", () => {
  test("all of a pool's processes are counted, those without the mark too that one of them started", async () => {
    await startTree(`one-${process.pid}`);
    await startTree(`other-${process.pid}`);
    const usage = usageOf(`one-${process.pid}`);
    expect(usage.processes).toBe(2);
    expect(usage.rssMb).toBeGreaterThan(20);
    expect(cpuBetween(usage, usageOf(`one-${process.pid}`))).toBeLessThan(1_000);
  });

  test("a pool without processes uses nothing", () => {
    expect(usageOf("nobody")).toEqual({ processes: 0, rssMb: 0, cpuMs: new Map() });
  });
});
