import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { killLeaving, serverOf } from "./processes.ts";

let podDir = "";
afterEach(() => podDir !== "" && rmSync(podDir, { recursive: true, force: true }));

test("nothing is killed whose file names another process", () => {
  podDir = mkdtempSync(join(tmpdir(), "relevo-pod-"));
  mkdirSync(join(podDir, "data/var/run"), { recursive: true });
  writeFileSync(join(podDir, "data/var/run/launcher.pid"), "1\n");

  expect(() => killLeaving({ pid: process.pid, podDir }, 2)).toThrow(
    expect.objectContaining({ code: "demo_pid_file", found: 1, allowed: String(process.pid) }),
  );
});

test.skipIf(process.platform !== "linux")("of a pod that has no process none is found", () => {
  expect(serverOf("no-such-pod")).toBeUndefined();
});
