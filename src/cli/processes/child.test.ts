import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("a process whose parent went while it was starting ends by itself", async () => {
  const child = fork(fileURLToPath(new URL("testing/slow-starter.ts", import.meta.url)), { execPath: process.execPath });
  await once(child, "message");

  child.disconnect();
  const [code] = await once(child, "exit");

  expect(code).toBe(0);
});

test("a Ctrl-C, which reaches all processes of a terminal, leaves those that have a parent to it", async () => {
  const child = fork(fileURLToPath(new URL("testing/waiting.ts", import.meta.url)), { execPath: process.execPath });
  await once(child, "message");

  child.kill("SIGINT");
  await once(child, "message");
  child.send("were you asked to end?");
  const [answer] = await once(child, "message");
  child.kill("SIGTERM");
  const [code] = await once(child, "exit");

  expect([answer, code]).toEqual(["not asked", 0]);
});

test("a process whose start fails ends, although it listens for the end of its parent", async () => {
  const child = fork(fileURLToPath(new URL("testing/failing-starter.ts", import.meta.url)), { execPath: process.execPath });

  const [code] = await once(child, "exit");

  expect(code).toBe(3);
});
