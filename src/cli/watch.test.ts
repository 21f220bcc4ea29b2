import { expect, test } from "vitest";
import type { FastifyInstance } from "fastify";
import { systemClock } from "../kernel/system.ts";
import { createServer } from "../server/app.ts";
import { createLogger } from "../server/log.ts";
import { createMetrics } from "../server/metrics.ts";
import { anInstance, FakeControlPlane, NOON } from "../server/testing/fake-control-plane.ts";
import { runCli } from "./testing/run-cli.ts";

async function listening(fake: FakeControlPlane, port = 0): Promise<{ readonly app: FastifyInstance; readonly url: string }> {
  const log = createLogger({ level: "silent", name: "test", clock: systemClock });
  const options = { host: "127.0.0.1", token: null, webhookSecret: null, version: "0.0.0" };
  const app = await createServer({ controlPlane: fake, metrics: createMetrics(), log, clock: systemClock, options });
  return { app, url: await app.listen({ host: "127.0.0.1", port }) };
}

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { timeout: 10_000, interval: 5 }).toBe(true);
}

function tell(fake: FakeControlPlane): void {
  for (const listener of fake.listeners)
    listener({ at: NOON, kind: "phase", pool: "default/orders", subject: "x", code: "serving", from: null, reason: null });
}

test("get --watch shows all once, then what changed at a transition, and ends when the user interrupts", async () => {
  const fake = new FakeControlPlane({ instances: [anInstance("orders-a"), anInstance("orders-b")] });
  const { app, url } = await listening(fake);
  const user = new AbortController();
  const printed: string[] = [];
  const running = runCli(["get", "instances", "--watch", "--server", url], {
    fetch,
    signal: user.signal,
    onOut: (text) => printed.push(text),
  });

  await until(() => printed.length === 1);
  fake.state.instances[1] = anInstance("orders-b", { phase: "draining", drainLoss: "deadline" });
  tell(fake);
  await until(() => printed.length === 2);
  user.abort();

  expect(await running).toMatchObject({ code: 0, err: "" });
  expect(printed.map((text) => text.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3)))).toEqual([
    [["INSTANCE", "POOL", "PHASE"], ["orders-a", "default/orders", "serving"], ["orders-b", "default/orders", "serving"], [""]],
    [["orders-b", "default/orders", "draining (deadline)"], [""]],
  ]);
  await app.close();
});

test("get --watch waits for a controller that went, and goes on when it is back", async () => {
  const fake = new FakeControlPlane({ instances: [anInstance("orders-a")] });
  const first = await listening(fake);
  const user = new AbortController();
  const printed: string[] = [];
  const running = runCli(["get", "instances", "-w", "-o", "json", "--server", first.url], {
    fetch,
    signal: user.signal,
    clock: systemClock,
    onOut: (text) => printed.push(text),
  });
  await until(() => printed.length === 1);

  await first.app.close();
  fake.state.instances[0] = anInstance("orders-a", { phase: "draining", drainLoss: "forced" });
  const second = await listening(fake, Number(new URL(first.url).port));
  await until(() => printed.length === 2);
  user.abort();

  expect((await running).code).toBe(0);
  expect(printed.map((line) => (JSON.parse(line) as { phase: string }).phase)).toEqual(["serving", "draining"]);
  await second.app.close();
});

test("get --watch fails at once when there never was a controller", async () => {
  const run = await runCli(["get", "instances", "--watch"], { fetch: () => Promise.reject(new TypeError("fetch failed")) });

  expect([run.code, run.out]).toEqual([1, ""]);
  expect(run.err).toContain("(controller_unreachable)");
});

test("get --watch keeps its columns, and shows once more what has come to its end", async () => {
  const fake = new FakeControlPlane({ instances: [anInstance("orders-a"), anInstance("orders-long-name")] });
  const { app, url } = await listening(fake);
  const user = new AbortController();
  const printed: string[] = [];
  const running = runCli(["get", "instances", "--watch", "--server", url], {
    fetch,
    signal: user.signal,
    onOut: (text) => printed.push(text),
  });

  await until(() => printed.length === 1);
  fake.state.instances[0] = anInstance("orders-a", { phase: "deleted" });
  tell(fake);
  await until(() => printed.length === 2);
  user.abort();
  await running;

  expect(printed.map((text) => text.split("\n").map((line) => line.slice(0, 42)))).toEqual([
    [
      "INSTANCE          POOL            PHASE    ",
      "orders-a          default/orders  serving  ",
      "orders-long-name  default/orders  serving  ",
      "",
    ].map((line) => line.slice(0, 42)),
    ["orders-a          default/orders  deleted  ".slice(0, 42), ""],
  ]);
  await app.close();
});
