import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { isUnderNohup } from "./hangup.ts";

function aCommand(env: Record<string, string>): ChildProcess {
  const stdio = ["ignore", "ignore", "ignore", "ipc"] as const;
  return fork(fileURLToPath(new URL("testing/hung-up.ts", import.meta.url)), { execPath: process.execPath, env, stdio: [...stdio] });
}

test("a terminal that is closed asks the command to end, which is not ended by being told again", async () => {
  const child = aCommand({});
  await once(child, "message");
  child.kill("SIGHUP");
  const [asked] = await once(child, "message");
  child.kill("SIGHUP");
  const [again] = await once(child, "message");
  child.send("and now?");
  const [code] = await once(child, "exit");
  expect([asked, again, code]).toEqual(["asked to end", "asked to end", 0]);
});

test("under nohup it goes on", async () => {
  const child = aCommand({ _: "/usr/bin/nohup" });
  await once(child, "message");
  child.kill("SIGHUP");
  child.send("and now?");
  const [said] = await once(child, "message");
  const [code] = await once(child, "exit");
  expect([said, code]).toEqual(["goes on", 0]);
});

test("nohup is known by its name, or by a standard input that can only be written", () => {
  const known = [
    isUnderNohup({ _: "/usr/bin/nohup" }, undefined),
    isUnderNohup({ _: "nohup" }, 0),
    isUnderNohup({ _: "/usr/bin/npx" }, 0o100001),
    isUnderNohup({ _: "/usr/bin/npx" }, 0o100000),
    isUnderNohup({}, 0o100002),
    isUnderNohup({}, undefined),
  ];
  expect(known).toEqual([true, true, true, false, false, false]);
});
