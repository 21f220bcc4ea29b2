/** A worker without the SDK, in another language, as the driver of the controller sees it (K4). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { QueueUnderTest, TOKEN } from "../../src/demand/queue/testing/queue-under-test.ts";
import type { InstanceTarget } from "../../src/drivers/port.ts";
import { ServiceDriver } from "../../src/drivers/service/service-driver.ts";
import { systemClock } from "../../src/kernel/system.ts";

const WORKER = new URL("../../examples/plain-python/worker.py", import.meta.url).pathname;

test("a worker in Python says its slots, keeps its lease while it works, and a drain waits for what it has", async () => {
  const queue = await new QueueUnderTest().start();
  onTestFinished(() => queue.remove());
  await queue.client().add("captures", [
    { id: "one", payload: { frames: 40, frameMs: 50 } },
    { id: "two", payload: { frames: 40, frameMs: 50 } },
    { id: "three", payload: {} },
  ]);
  const worker = spawn("python3", [WORKER], {
    env: { ...process.env, QUEUE_URL: queue.url, QUEUE_TOKEN: TOKEN, HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "capture-1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    worker.kill("SIGKILL");
    await once(worker, "close");
  });
  const [line] = (await once(createInterface({ input: worker.stdout }), "line")) as [string];
  const driver = new ServiceDriver({ clock: systemClock });
  onTestFinished(() => driver.destroy());
  const address = JSON.parse(line) as { readonly host: string; readonly port: number };
  const target: InstanceTarget = { ...address, bootId: null, protocol: "relevo/v1", healthPath: "/relevo/v1/health" };
  const bootId = (await driver.identity(target))?.bootId ?? "";
  expect(await driver.slots(target)).toMatchObject({ total: 2, busy: [], flow: "queue/captures" });

  await driver.admit(target, { step: "step-1", bootId, deadline: null });
  await expect.poll(async () => (await driver.slots(target))?.busy.map(({ progress }) => progress > 2)).toEqual([true, true]);
  await driver.drain(target, { step: "step-2", bootId, deadline: null });
  expect((await driver.obligations(target))?.requests).toBe(2);
  await expect.poll(async () => (await driver.obligations(target))?.requests, { timeout: 15_000 }).toBe(0);
  expect(await driver.slots(target)).toMatchObject({ busy: [], outcomes: { done: 2, nothing: 0, reaped: 0, failed: 0 } });
  expect(await queue.client().counts("captures")).toMatchObject({ waiting: 1, taken: 0, done: 2 });
});
