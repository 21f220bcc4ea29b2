/** An instance with a writer lease, over real sockets with virtual time (S10). */
import { expect, test } from "vitest";
import type { Epoch } from "../kernel/epoch.ts";
import { WRITER_EPOCH_HEADER } from "../model/writer.ts";
import type { LeaseAnswer } from "./lease-call.ts";
import type { InstanceOptions } from "./instance.ts";
import { start } from "./test-kit.ts";

const LEASE = { url: "http://127.0.0.1:1/", token: "secret", pool: "default/orders", instance: "orders-1", ttlMs: 9_000 };

async function leased(given: Partial<InstanceOptions> = {}) {
  const world: { answer: LeaseAnswer } = { answer: { kind: "renewed", ordinal: 0, epoch: "1.4" as Epoch, ttlMs: 9_000 } };
  const started = await start({
    env: { HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "orders-1" },
    leaseCall: async () => world.answer,
    ...given,
  });
  const admit = (lease?: typeof LEASE) =>
    fetch(`${started.base}/relevo/v1/admit`, {
      method: "POST",
      headers: { "idempotency-key": "step-admit" },
      body: JSON.stringify({ bootId: "boot-0123456789", ...(lease === undefined ? {} : { lease }) }),
    });
  expect((await admit(LEASE)).status).toBe(200);
  return { ...started, world, health: async () => (await fetch(`${started.base}/relevo/v1/health`)).json() };
}

test("answers carry the epoch under which they were made", async () => {
  const { base, clock } = await leased();
  await clock.advance(0);
  const answer = await fetch(base);
  expect([answer.status, answer.headers.get(WRITER_EPOCH_HEADER), await answer.text()]).toEqual([200, "1.4", "hello"]);
});

test("without a lease there is no such header", async () => {
  const { base } = await start();
  expect((await fetch(base)).headers.has(WRITER_EPOCH_HEADER)).toBe(false);
});

test("before its turn has come an instance takes requests, is well, and has no epoch", async () => {
  const { base, clock, world, health, instance } = await leased();
  world.answer = { kind: "refused", code: "lease_not_held" };
  await clock.advance(0);
  const answer = await fetch(base);
  expect([answer.status, answer.headers.has(WRITER_EPOCH_HEADER), instance.writer.epoch()]).toEqual([200, false, null]);
  expect(await health()).toMatchObject({ ok: true });
});

test("once its lease lapsed it takes nothing, says so as provably not taken, and its health says why; renewed, it goes on", async () => {
  const { base, clock, world, health, instance } = await leased();
  await clock.advance(0);
  world.answer = { kind: "failed", why: "the controller is away" };
  await clock.advance(9_000);
  const refused = await fetch(base);
  expect([refused.status, refused.headers.get("relevo-not-taken"), await refused.json()]).toEqual([
    503,
    "1",
    { error: { code: "lease_lost", message: "The instance has lost its writer lease: it did not take the request." } },
  ]);
  expect(await health()).toMatchObject({
    ok: false,
    reason: "lease_lapsed: the writer lease was not renewed in time (the controller is away)",
  });
  expect(instance.state).toBe("admitted");

  world.answer = { kind: "renewed", ordinal: 0, epoch: "1.4" as Epoch, ttlMs: 9_000 };
  await clock.advance(1_000);
  expect([(await fetch(base)).status, await health()]).toEqual([200, { ok: true, bootId: "boot-0123456789", reason: null }]);
});

test("it closes itself after the grace", async () => {
  const closed: string[] = [];
  const { clock, world, instance } = await leased({ leaseGraceMs: 5_000, onClose: ({ step }) => void closed.push(step) });
  await clock.advance(0);
  world.answer = { kind: "failed", why: "away" };
  await clock.advance(13_000);
  expect(instance.state).toBe("admitted");
  await clock.advance(2_000);
  expect([instance.state, closed]).toEqual(["closed", ["lease-lost"]]);
});

test("it closes itself at once when it is fenced", async () => {
  const { base, clock, world, instance, health } = await leased();
  await clock.advance(0);
  world.answer = { kind: "refused", code: "lease_fenced" };
  await clock.advance(3_000);
  expect([instance.state, (await fetch(base)).status]).toEqual(["closed", 503]);
  expect(await health()).toMatchObject({ ok: false, reason: "lease_fenced: the controller says that this instance may not write" });
});

test("an answer whose lease lapsed while it was made is withheld", async () => {
  let finish = (): void => undefined;
  const { base, clock, world } = await leased({
    handler: (_request, response) => {
      finish = () => response.end("late");
    },
  });
  await clock.advance(0);
  const answer = fetch(base).then(
    () => "answered",
    () => "withheld",
  );
  await expect.poll(() => finish.length === 0 && finish.toString().includes("late")).toBe(true);
  world.answer = { kind: "failed", why: "away" };
  await clock.advance(9_000);
  finish();
  expect(await answer).toBe("withheld");
});
