/** Needs python3. */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { instanceContract } from "../../../test/contracts/instance.ts";
import { systemClock } from "../../kernel/system.ts";
import type { InstanceTarget } from "../port.ts";
import { ServiceDriver } from "./service-driver.ts";

const driver = new ServiceDriver({ clock: systemClock });
afterAll(() => driver.destroy());

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startPython(file: string, protocol: InstanceTarget["protocol"], healthPath: string): Promise<InstanceTarget> {
  const port = await freePort();
  const path = join(import.meta.dirname, "../../../examples/plain-python", file);
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
