/** Worker pools whose size follows their own backlog, in a whole controller under a virtual clock. Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { capturePool, Harness } from "./harness.ts";
import { unreachable } from "./modelled-work.ts";

const POOL = "default/capture";

let harness: Harness;
afterEach(() => harness.close());

async function start(options: { readonly pushes?: boolean; readonly pool?: ReturnType<typeof capturePool> } = {}): Promise<void> {
  harness = await Harness.start({ gateways: 0, work: { pushes: options.pushes ?? true } });
  await harness.apply(options.pool ?? capturePool());
}

test("a worker pool serves without any gateway, grows with its backlog within a second, and shrinks without an interrupted job (K1)", async () => {
  await start();
  await harness.untilServing(1, POOL);
  await harness.pass(10_000);

  const addedAt = harness.clock.now();
  harness.work.add(40);
  await harness.until("its size is decided", async () => (await harness.store.readPool(POOL))?.scale?.desired === 6, 1_000);
  expect(harness.clock.now() - addedAt).toBeLessThanOrEqual(1_000);
  await harness.untilServing(6, POOL);
  await harness.until("the backlog is drained", () => harness.work.backlog.length === 0 && harness.work.taken === 0, 60_000);
  await harness.until("only the floor is left", async () => (await harness.records(POOL)).length === 1, 120_000);

  expect(harness.work).toMatchObject({ done: 40, interrupted: 0 });
  const seals = (await harness.store.listInstances(POOL, 100)).flatMap(({ seal }) => (seal === null ? [] : [seal]));
  expect(seals).toEqual(["confirmed", "confirmed", "confirmed", "confirmed", "confirmed"]);
  const changes = await harness.store.listScaleChanges(POOL, 100);
  expect(changes.at(-1)).toMatchObject({ from: 1, to: 6, reason: "scale_up" });
  expect(changes[0]).toMatchObject({ to: 1 });
});

test("a signal that is none changes nothing, is told as a reason, and is followed again when it returns (K11)", async () => {
  await start();
  harness.work.add(200);
  await harness.untilServing(6, POOL);

  const troubles: [string, () => never | number][] = [
    ["not_a_number", () => Number.NaN],
    ["negative", () => -1],
    ["type_changed", () => null as unknown as number],
    ["unreachable", unreachable],
  ];
  for (const [code, backlog] of troubles) {
    harness.work.answer = (reading) => ({ ...reading, backlog: backlog() });
    await harness.until(`it is told: ${code}`, () => harness.demand(POOL)?.trouble?.code === code, 30_000);
    await harness.pass(3_000);
    expect(await harness.reasons(POOL)).toContain("scale_demand_invalid");
    expect((await harness.store.readPool(POOL))?.scale?.desired).toBe(6);
  }
  harness.work.answer = undefined;
  await harness.until("it is followed again", () => harness.demand(POOL)?.trouble === null, 40_000);
});
