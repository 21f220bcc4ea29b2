import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { type CallPriority, RateLimiter } from "./limiter.ts";

function world(qps: number, burst: number) {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ qps, burst }, clock);
  const went: string[] = [];
  const call = (name: string, priority: CallPriority): void => {
    void limiter.take(priority).then(() => went.push(`${clock.monotonic()} ${name}`));
  };
  return { clock, limiter, went, call };
}

test("a burst goes at once, then so many a second, and a rest fills the burst again but no more", async () => {
  const { clock, went, call } = world(10, 3);
  for (let count = 1; count <= 5; count++) call(`a${count}`, "normal");
  await clock.advance(60_000);
  for (let count = 1; count <= 4; count++) call(`b${count}`, "normal");
  await clock.advance(1_000);

  expect(went).toEqual(["0 a1", "0 a2", "0 a3", "100 a4", "200 a5", "60000 b1", "60000 b2", "60000 b3", "60100 b4"]);
});

test("a cordon never waits behind a list or a create: of those who wait the most urgent goes first", async () => {
  const { clock, went, call } = world(10, 1);
  for (const name of ["list 1", "list 2", "list 3"]) call(name, "background");
  call("read", "normal");
  call("create", "urgent");
  call("cordon", "first");
  await clock.advance(1_000);

  expect(went.map((line) => line.slice(line.indexOf(" ") + 1))).toEqual(["list 1", "cordon", "create", "read", "list 2", "list 3"]);
});

test("who waits for long gets every fourth turn, so that endless urgent calls starve nobody", async () => {
  const { clock, went, call } = world(10, 1);
  call("first", "urgent");
  call("list", "background");
  for (let count = 0; count < 100; count++) call("cordon", "urgent");
  await clock.advance(6_000);

  const list = Number(went.find((line) => line.endsWith("list"))?.split(" ")[0]);
  expect(list).toBeGreaterThanOrEqual(5_000);
  expect(list).toBeLessThanOrEqual(5_400);
});

test("a server that asks to wait is left alone by calls of that priority and below, and by no others", async () => {
  const { clock, limiter, went, call } = world(1_000, 100);
  limiter.hold("normal", 2_000);
  for (const priority of ["background", "normal", "urgent", "first"] as const) call(priority, priority);
  await clock.advance(3_000);

  expect(went).toEqual(["0 urgent", "0 first", "2000 normal", "2000 background"]);
});

test("a call that is given up waits no longer, and its turn is another's", async () => {
  const { clock, limiter, went, call } = world(1, 1);
  const ending = new AbortController();
  call("first", "normal");
  const given = limiter.take("normal", ending.signal);
  call("second", "normal");
  ending.abort(new Error("given up"));
  await expect(given).rejects.toThrow("given up");
  await clock.advance(1_000);

  expect([went, limiter.waiting]).toEqual([["0 first", "1000 second"], 0]);
});

test("a queue has an end: one call more is refused and may be tried later", async () => {
  const { limiter } = world(1, 1);
  for (let count = 0; count <= 10_000; count++) void limiter.take("background");

  await expect(limiter.take("background")).rejects.toThrow(expect.objectContaining({ code: "kube_queue_full", class: "retryable" }));
  expect(limiter.waiting).toBe(10_000);
});
