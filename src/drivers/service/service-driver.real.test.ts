/** Needs python3, bash and curl. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, expect, test } from "vitest";
import { instanceContract } from "../../../test/contracts/instance.ts";
import { systemClock } from "../../kernel/system.ts";
import type { InstanceTarget } from "../port.ts";
import { ServiceDriver } from "./service-driver.ts";
import { freePort } from "../../../test/ports.ts";

const ROOT = join(import.meta.dirname, "../../..");
const driver = new ServiceDriver({ clock: systemClock });
afterAll(() => driver.destroy());

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function startPython(file: string, protocol: InstanceTarget["protocol"], healthPath: string): Promise<InstanceTarget> {
  const port = await freePort();
  const path = join(ROOT, "examples/plain-python", file);
  const child = spawn("python3", [path], { env: { ...process.env, HOST: "127.0.0.1", PORT: `${port}` }, stdio: "inherit" });
  children.push(child);
  const failed = new Promise<never>((_resolve, reject) => child.once("error", reject));
  const target: InstanceTarget = { host: "127.0.0.1", port, bootId: null, protocol, healthPath };
  const well = expect
    .poll(
      () =>
        driver.health(target).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true);
  await Promise.race([well, failed]);
  return target;
}

instanceContract("the protocol in Python", { driver, start: () => startPython("instance.py", "relevo/v1", "/relevo/v1/health") });

test("a plain Python server without the protocol is judged by its health path alone", async () => {
  const target = await startPython("server.py", "none", "/healthz");

  expect(await driver.health(target)).toEqual({ ok: true, bootId: null, reason: null });
  expect(await driver.identity(target)).toBeNull();
  expect(await (await fetch(`http://127.0.0.1:${target.port}/`)).text()).toBe("hello from python\n");
});

test("what docs/instance-protocol.md shows with curl can be run as it stands", async () => {
  const page = await readFile(join(ROOT, "docs/instance-protocol.md"), "utf8");
  const script = /```sh\n(.*?)```/s.exec(page)?.[1] ?? "";
  const { stdout } = await promisify(execFile)("bash", ["-c", script.replaceAll("8099", `${await freePort()}`)], {
    cwd: ROOT,
    timeout: 30_000,
  });

  const states = [...stdout.matchAll(/"state": "(\w+)"/g)].map(([, state]) => state);
  expect(states).toEqual(["starting", "ready", "admitted", "admitted", "draining", "closed"]);
  expect(stdout).toContain('"code": "boot_id_mismatch"');
  expect(stdout).toContain("relevo-not-taken: 1");
});
