/** Gateway replicas that several controllers have streams to: whoever may hear of an instance is waited for before it is sealed (I5). */
import { expect, test } from "vitest";
import { specOf } from "../../test/builders/pool.ts";
import { epoch, type Epoch } from "../kernel/epoch.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { ControllerLine } from "../model/membership.ts";
import { routePolicyOf } from "../model/pool.ts";
import type { Store } from "../store/port.ts";
import { openStore } from "../store/store.ts";
import { GatewayRegistry } from "./gateways.ts";

const POOL = "shop/orders";
const MEMBERSHIP = { route: "orders", generation: epoch(0, 1), policy: routePolicyOf(specOf()), members: [] };

/** A store whose calls wait until they are let through, one by one and by name. */
class Gates {
  readonly #waiting: { readonly name: string; readonly open: () => void }[] = [];

  of(store: Store, names: readonly (keyof Store)[]): Store {
    return new Proxy(store, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== "function") return value;
        if (!names.includes(property as keyof Store)) return value.bind(target);
        return async (...args: unknown[]) => {
          await new Promise<void>((open) => this.#waiting.push({ name: String(property), open }));
          return (value as (...given: unknown[]) => unknown).apply(target, args);
        };
      },
    });
  }

  /** Lets the one that waits go on, and settles when it has stopped at the next gate, or is through. */
  async step(): Promise<void> {
    this.#waiting.shift()?.open();
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  }
}

function orders(a: number, b: number): readonly string[] {
  if (a === 0) return ["b".repeat(b)];
  if (b === 0) return ["a".repeat(a)];
  return [...orders(a - 1, b).map((rest) => `a${rest}`), ...orders(a, b - 1).map((rest) => `b${rest}`)];
}

/** a: the replica joins the former owner (registers; epochs are read). b: another one takes the pool (claims; reads who is registered). */
test.each(orders(2, 2))(
  "a replica that joins the former owner while the pool is taken, in the order %s, is told nothing of it or is waited for",
  async (order) => {
    const clock = new VirtualClock();
    const store = await openStore({ path: ":memory:" });
    const held = await store.claim(POOL, "former", clock.now());
    const joining = new Gates();
    const lost: string[] = [];
    const former: GatewayRegistry = new GatewayRegistry({
      store: joining.of(store, ["registerGateway", "poolEpochs"]),
      clock,
      onChange: () => undefined,
      learnEpochs: (epochs: ReadonlyMap<string, Epoch>) => {
        if (epochs.get(POOL) === held.epoch) return;
        lost.push(POOL);
        former.forgetRoute("orders");
      },
    });
    former.publish(MEMBERSHIP);
    const taking = new Gates();
    const takersStore = taking.of(store, ["claim", "listGateways"]);
    const taker = new GatewayRegistry({ store: takersStore, clock, onChange: () => undefined, learnEpochs: () => undefined });

    const lines: ControllerLine[] = [];
    const joined = former.join("gw-1", (line) => lines.push(line) > 0);
    const taken = takersStore.claim(POOL, "taker", clock.now()).then(() => taker.refresh());
    for (const who of order) await (who === "a" ? joining : taking).step();
    await Promise.all([joined, taken]);

    const isTold = lines.some((line) => line.type === "membership" && line.routes.some(({ route }) => route === "orders"));
    const isWaitedFor = taker.views().some(({ replica }) => replica === "gw-1");
    expect(isTold && !isWaitedFor).toBe(false);
    expect(lost.length).toBe(isTold ? 0 : 1);
  },
);

async function shared() {
  const clock = new VirtualClock();
  const store = await openStore({ path: ":memory:" });
  const registry = (): GatewayRegistry => new GatewayRegistry({ store, clock, onChange: () => undefined, learnEpochs: () => undefined });
  const [one, two] = [registry(), registry()];
  await one.start();
  await two.start();
  return { clock, store, one, two };
}

const replicas = (registry: GatewayRegistry) => registry.views().map(({ replica }) => replica);

test("a replica that joins elsewhere is known within a second or so, and so is one that leaves there", async () => {
  const { clock, one, two } = await shared();
  await one.join("gw-1", () => true);
  expect(replicas(two)).toEqual([]);
  await clock.advance(1_100);
  expect(replicas(two)).toEqual(["gw-1"]);
  expect(two.views()[0]?.silent).toBe(false);

  await one.leave("gw-1");
  await clock.advance(1_100);
  expect(replicas(two)).toEqual([]);
});

test("one that another controller gave up and that talks to this one is registered again", async () => {
  const { clock, store, one, two } = await shared();
  await two.join("gw-1", () => true);
  await store.removeGateway("gw-1");
  await clock.advance(1_100);
  expect(replicas(two)).toEqual(["gw-1"]);
  await clock.advance(1_100);
  expect(replicas(one)).toEqual(["gw-1"]);
});

test("a store that was rewound has forgotten a replica that talks: those that are silent are not gone either, and all are registered again", async () => {
  const { clock, store, two } = await shared();
  await two.join("gw-silent", () => true);
  await clock.advance(10_000);
  await two.join("gw-talks", () => true);
  for (const id of ["gw-silent", "gw-talks"]) await store.removeGateway(id);
  await clock.advance(1_100);
  expect((await store.listGateways()).map(({ id }) => id).toSorted()).toEqual(["gw-silent", "gw-talks"]);
  expect(replicas(two)).toEqual(["gw-silent", "gw-talks"]);
});

test("a replica that is lost here may have heard of a pool's instances from its former owner, until the pool was taken", async () => {
  const { clock, one, two } = await shared();
  await one.join("gw-1", () => true);
  await clock.advance(125_000);
  const before = two.views()[0]?.lostAt ?? null;
  expect(before).not.toBeNull();
  await two.refresh();
  expect(two.views()[0]?.lostAt).toBe(clock.now());
});
