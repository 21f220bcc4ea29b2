/** What a pass sees of the passes before it, and how many there are (I5, D15). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { NODES } from "../../src/kube/resources.ts";
import type { Change, Store } from "../../src/store/port.ts";
import { Harness, ordersPool } from "./harness.ts";
import { intercept } from "./intercept.ts";

let harness: Harness;
afterEach(() => harness.close());

/** Counts passes, and ends a run of them that has no end. */
function counting(count: { passes: number }): (store: Store) => Store {
  return (store) =>
    new Proxy(store, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== "function") return value;
        if (property !== "readPool") return value.bind(target);
        return (pool: string) => {
          count.passes += 1;
          if (count.passes > 2_000) throw new Error("passes without an end");
          return target.readPool(pool);
        };
      },
    });
}

test("while a call of an instance takes its time the gateways hear of the drain at once, and the pool is not looked at without a pause (D5)", async () => {
  const count = { passes: 0 };
  harness = await Harness.start({ store: counting(count) });
  const [victim] = await harness.serve();
  const drain = harness.instances.drain.bind(harness.instances);
  harness.instances.drain = async (target, call) => {
    await harness.clock.sleep(20_000);
    return drain(target, call);
  };
  for (const gateway of harness.gateways) gateway.hold(victim?.id ?? "", { requests: 1 });
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it drains", async () => (await harness.phase(victim?.id ?? "")) === "draining");
  await harness.pass(50);
  expect(harness.gateways[0]?.routed()).not.toContain(victim?.id);

  count.passes = 0;
  await harness.pass(10_000);
  expect(count.passes).toBeLessThan(100);
});

test("a drain that is decided and not yet recorded is no longer spare for another one (I5)", async () => {
  let isHeldUp = false;
  const waiting: (() => void)[] = [];
  harness = await Harness.start({
    nodes: 6,
    store: (store) =>
      new Proxy(store, {
        get(target, property) {
          const value: unknown = Reflect.get(target, property);
          if (typeof value !== "function") return value;
          if (property !== "listSteps") return value.bind(target);
          return async (...args: Parameters<Store["listSteps"]>) => {
            if (isHeldUp && args[2]?.startsWith("drain/")) await new Promise<void>((resolve) => waiting.push(resolve));
            return target.listSteps(...args);
          };
        },
      }),
  });
  await harness.serve(ordersPool({ desired: 3, disruption: { draining: 3 } }));
  // One more than desired: the pass that sees it drains one. Before that is recorded another instance is to go, with a deadline.
  isHeldUp = true;
  await harness.shrink(2);
  await harness.pass(500);
  const [first] = await harness.serving();
  await harness.warn(harness.machineOf(first?.incarnation.nodeName ?? ""));
  await harness.pass(500);
  isHeldUp = false;
  for (const goOn of waiting) goOn();
  await harness.pass(50);
  expect((await harness.serving()).length).toBeGreaterThanOrEqual(2);
});

test("requests that come and go at what serves, and nodes that carry nothing of the pool, are no reason to look (D15)", async () => {
  const count = { passes: 0 };
  harness = await Harness.start({ nodes: 6, store: counting(count) });
  const served = await harness.serve();
  await harness.pass(10_000);
  const used = new Set(served.map(({ incarnation }) => incarnation.nodeName));
  const idle = harness.cluster.provisioner.nodes().find(({ name }) => !used.has(name))?.name ?? "";

  count.passes = 0;
  for (let round = 1; round <= 20; round += 1) {
    harness.gateways[0]?.hold(served[0]?.id ?? "", { requests: round });
    await harness.cluster.api.patch({ type: NODES, name: idle }, { metadata: { annotations: { beat: String(round) } } });
    await harness.pass(50);
  }
  expect(count.passes).toBeLessThanOrEqual(1);

  await harness.cluster.api.patch(
    { type: NODES, name: served[0]?.incarnation.nodeName ?? "" },
    { metadata: { annotations: { beat: "1" } } },
  );
  await harness.pass(20);
  expect(count.passes).toBeGreaterThanOrEqual(1);
});

test.for(["readPool", "commit"])(
  "what was decided before the flag went off is not begun when the store kept the pass in its %s meanwhile (I26)",
  async (slow) => {
    let waits = 0;
    let isSlow = false;
    harness = await Harness.start({
      store: (store) =>
        intercept(store, async ({ name, input: [, changes] }, go) => {
          if (isSlow && name === slow) {
            waits += 1;
            await harness.clock.sleep(5_000);
          }
          // The pass after this one decides the cordon.
          if (name === "commit") isSlow ||= (changes as readonly Change[]).some(({ kind }) => kind === "record_evidence");
          return go();
        }),
    });
    const [victim] = await harness.serve();
    await harness.drift(victim?.incarnation.nodeName ?? "");
    await harness.until("the pass waits", () => waits > 0);
    await harness.setMode("Off");
    await harness.pass(30_000);

    expect((await harness.steps()).filter(({ kind }) => kind.startsWith("cordon_node"))).toEqual([]);
  },
);
