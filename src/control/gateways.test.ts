import { describe, expect, test } from "vitest";
import { specOf } from "../../test/builders/pool.ts";
import { epoch } from "../kernel/epoch.ts";
import type { Clock } from "../kernel/clock.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { ControllerLine, GatewayReport, RouteMembership } from "../model/membership.ts";
import { routePolicyOf } from "../model/pool.ts";
import { openStore } from "../store/store.ts";
import type { Store } from "../store/port.ts";
import { LIMITS } from "../gateway/limits.ts";
import { GATEWAY_TTL_MS, GatewayRegistry, REPORTS_WITHIN_MS } from "./gateways.ts";

interface Rig {
  readonly registry: GatewayRegistry;
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly woken: (string | null)[];
}

async function rig(store?: Store): Promise<Rig> {
  const clock = new VirtualClock();
  const opened = store ?? (await openStore({ path: ":memory:" }));
  const woken: (string | null)[] = [];
  const registry = new GatewayRegistry({ store: opened, clock, onChange: (route) => woken.push(route) });
  return { registry, clock, store: opened, woken };
}

const membership = (counter: number, route = "orders"): RouteMembership => ({
  route,
  generation: epoch(0, counter),
  policy: routePolicyOf(specOf()),
  members: [],
});

const report = (replica: string, sequence: number, applied = 1): GatewayReport => ({
  replica,
  sequence,
  routes: [
    {
      route: "orders",
      applied: epoch(0, applied),
      members: [],
      counts: { accepted: 0, completed: 0, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 },
    },
  ],
});

function listener(): { readonly lines: ControllerLine[]; readonly send: (line: ControllerLine) => boolean } {
  const lines: ControllerLine[] = [];
  return { lines, send: (line) => lines.push(line) > 0 };
}

const generations = (lines: readonly ControllerLine[]): readonly string[] =>
  lines.flatMap((line) => (line.type === "membership" ? line.routes.map(({ generation }) => generation) : []));

describe("what replicas are told", () => {
  test("all routes first, then what changed, each once, never an older generation", async () => {
    const { registry } = await rig();
    registry.publish(membership(1));
    const { lines, send } = listener();
    await registry.join("gw-1", send);
    for (const counter of [1, 2, 2, 1, 3]) registry.publish(membership(counter));
    expect(generations(lines)).toEqual(["0.1", "0.2", "0.3"]);
  });

  test("a policy that changed is told, although the generation is the same", async () => {
    const { registry } = await rig();
    const { lines, send } = listener();
    await registry.join("gw-1", send);
    registry.publish(membership(1));
    registry.publish({ ...membership(1), policy: { ...membership(1).policy, queueLimit: 7 } });
    expect(generations(lines)).toEqual(["0.1", "0.1"]);
  });

  test("as long as some pools were not looked at, a replica is not told that these are all routes: it would drop what drains on the others", async () => {
    const { registry } = await rig();
    const { lines, send } = listener();
    await registry.join("gw-1", send);
    registry.publish(membership(1));
    registry.publish(membership(1, "other"));
    registry.withdraw("other");
    registry.allRoutesKnown();
    expect(lines.map((line) => line.type === "membership" && [line.complete, line.routes.map(({ route }) => route)])).toEqual([
      [false, []],
      [false, ["orders"]],
      [false, ["other"]],
      [false, ["orders"]],
      [true, ["orders"]],
    ]);
  });

  test("a stream that is over is not written to again", async () => {
    const { registry } = await rig();
    let calls = 0;
    await registry.join("gw-1", () => {
      calls += 1;
      return false;
    });
    registry.publish(membership(1));
    registry.publish(membership(2));
    expect(calls).toBe(2); // the first line, and the one whose answer said that it is over
    expect(registry.views()).toMatchObject([{ replica: "gw-1", connected: false }]);
  });
});

describe("who a seal waits for", () => {
  test("a replica is silent after its TTL, and heard again with its next report", async () => {
    const { registry, clock, woken } = await rig();
    await registry.start();
    await registry.join("gw-1", listener().send);
    await clock.advance(GATEWAY_TTL_MS);
    expect(registry.views()).toMatchObject([{ silent: false }]);
    woken.length = 0;
    await clock.advance(1_001);
    expect(registry.views()).toMatchObject([{ silent: true }]);
    expect(woken).toEqual([null]);
    registry.take(report("gw-1", 1));
    expect(registry.views()).toMatchObject([{ silent: false }]);
  });

  test("who was registered before the controller's restart is waited for, for a full TTL", async () => {
    const first = await rig();
    await first.registry.join("gw-1", listener().send);
    const second = await rig(first.store);
    expect(await second.registry.start()).toBe(second.clock.now() + GATEWAY_TTL_MS);
    expect(second.registry.views()).toMatchObject([{ replica: "gw-1", silent: false, report: null, connected: false }]);
  });

  test("a store that was rewound has forgotten replicas: all that are known are registered again, silent and lost ones too, for the next controller", async () => {
    const { registry, clock, store } = await rig();
    await registry.start();
    await registry.join("gw-lost", listener().send);
    await clock.advance(150_000);
    await registry.join("gw-talks", listener().send);
    await registry.join("gw-left", listener().send);
    await registry.leave("gw-left");
    for (const { id } of await store.listGateways()) await store.removeGateway(id);

    await registry.registerAgain();
    const next = await rig(store);
    await next.registry.start();
    expect(next.registry.views().map(({ replica }) => replica)).toEqual(["gw-lost", "gw-talks"]);
  });

  test("one that left in good order is forgotten at once, one that is silent for long is given up, and forgotten after a day", async () => {
    const { registry, clock, store } = await rig();
    await registry.start();
    await registry.join("gw-1", listener().send);
    await registry.join("gw-2", listener().send);
    await registry.leave("gw-1");
    expect((await store.listGateways()).map(({ id }) => id)).toEqual(["gw-2"]);
    await clock.advance(180_000);
    expect((await store.listGateways()).map(({ id }) => id)).toEqual(["gw-2"]);
    expect(registry.views()).toMatchObject([{ replica: "gw-2", silent: true, connected: false, lostAt: clock.now() - 59_000 }]);
    await clock.advance(24 * 3_600_000);
    expect(await store.listGateways()).toEqual([]);
  });

  test("a replica that takes the place of one that ended is not kept waiting for it", async () => {
    const { registry, store } = await rig();
    await registry.join("gw-1", listener().send);
    await registry.join("gw-2", listener().send, "gw-1");
    await registry.join("gw-2", listener().send, "gw-1"); // its stream broke and is opened again
    expect((await store.listGateways()).map(({ id }) => id)).toEqual(["gw-2"]);
    expect(registry.views()).toMatchObject([{ replica: "gw-2", report: null }]);
  });

  test("a report of an unknown replica is refused, and one that arrives late changes nothing", async () => {
    const { registry } = await rig();
    expect(registry.take(report("gw-1", 1))).toBe(false);
    await registry.join("gw-1", listener().send);
    expect(registry.take(report("gw-1", 2, 5))).toBe(true);
    expect(registry.take(report("gw-1", 1, 3))).toBe(true);
    expect(registry.views()[0]?.report?.routes[0]?.applied).toBe("0.5");
  });

  test("pools are woken by what may change a decision, not by every report", async () => {
    const { registry, woken } = await rig();
    await registry.join("gw-1", listener().send);
    woken.length = 0;
    registry.take(report("gw-1", 1));
    registry.take(report("gw-1", 2));
    registry.take(report("gw-1", 3, 2));
    expect(woken).toEqual(["orders", "orders"]);
  });
});

describe("time that nobody watched", () => {
  /** A controller whose wall clock can be set, and which can be stopped: its timers do not run meanwhile. */
  async function troubled() {
    const clock = new VirtualClock();
    const trouble = { setForwardMs: 0, stoppedMs: 0 };
    const port: Clock = {
      now: () => clock.now() + trouble.setForwardMs + trouble.stoppedMs,
      monotonic: () => clock.monotonic() + trouble.stoppedMs,
      after: (delayMs, fire) => clock.after(delayMs, fire),
      sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
    };
    const registry = new GatewayRegistry({ store: await openStore({ path: ":memory:" }), clock: port, onChange: () => undefined });
    await registry.start();
    await registry.join("gw-1", () => true);
    registry.take(report("gw-1", 1));
    return { registry, clock, trouble, silent: () => registry.views().map((view) => view.silent) };
  }

  test.each([3_600_000, -3_600_000])("a wall clock that is set by %i ms makes no replica silent, and keeps none that is", async (ms) => {
    const { clock, trouble, silent } = await troubled();

    trouble.setForwardMs = ms;
    expect(silent()).toEqual([false]);
    await clock.advance(GATEWAY_TTL_MS + 1);
    expect(silent()).toEqual([true]);
  });

  test("what a replica said while the controller was stopped can be read before its silence counts", async () => {
    const { registry, clock, trouble, silent } = await troubled();

    trouble.stoppedMs = 60_000;
    expect(silent()).toEqual([false]);
    await clock.advance(1_000);
    expect(silent()).toEqual([false]);
    registry.take(report("gw-1", 2));
    await clock.advance(GATEWAY_TTL_MS);
    expect(silent()).toEqual([false]);
    await clock.advance(1);
    expect(silent()).toEqual([true]);
    registry.stop();
  });
});

test("each replica that lives has come to a new controller within the time that it waits for witnesses, also one that hung at another", () => {
  const { connectControllerMs, reconnectMaxMs, reportEveryMs } = LIMITS;
  expect(REPORTS_WITHIN_MS).toBeGreaterThanOrEqual(connectControllerMs + reconnectMaxMs + reportEveryMs);
});
