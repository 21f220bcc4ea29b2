/** Gateways that die, and gateways that are cut off, under load. Level: real processes. */
import { afterEach, expect, test } from "vitest";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { systemClock as clock } from "../../src/kernel/system.ts";
import { type Fleet, startFleet, Transaction, Wire } from "./fleet.ts";

const MIX: Mix = {
  perSecond: { order: 40, charge: 20, export: 3, live: 2, tx: 4 },
  exportSeconds: [0.5, 1.5],
  liveSeconds: [0.5, 1.5],
  txSeconds: [1, 3],
  stepMs: 100,
  http2Share: 0.3,
};
/** What can always be tried again elsewhere, or provably was not taken. */
const SHORT: Mix = { ...MIX, perSecond: { order: 40, charge: 20, export: 0, live: 0, tx: 0 } };

/** Other tests take the same cores. */
const TIMEOUT_MS = 60_000;

let fleet: Fleet;
afterEach(() => fleet.close());

test(
  "a gateway that is killed under load and started again serves on: nothing acknowledged is missing, nothing is done twice, open transactions go on (D19)",
  async () => {
    fleet = await startFleet();
    const first = await fleet.gatewayProcess();
    await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
    const load = fleet.load(first.url, MIX);
    load.startAct("killed");
    await fleet.until("it is under load", () => load.snapshot().outcomes.completed > 60);
    const transaction = await Transaction.begin(first.url);

    await first.kill();
    const second = await fleet.gatewayProcess(first.port);
    await fleet.until(
      "the new one routes",
      async () => (await fetch(`${second.url}/orders`, { method: "POST", body: JSON.stringify({ id: "probe" }) })).ok,
    );
    const backAt = clock.now();
    expect((await transaction.addItem()).status).toBe(200);
    expect(await (await transaction.commit()).json()).toMatchObject({ items: 1, by: transaction.instance });
    const { result } = await load.endAct("killed");

    expect(result.doubled).toBe(0);
    for (const { detail, startedAt } of result.problems) {
      expect(detail).toMatch(/^broken_|ECONNREFUSED|ECONNRESET|503|1006/);
      expect(startedAt).toBeLessThanOrEqual(backAt);
    }

    load.startAct("after");
    await fleet.until("it is under load again", () => load.snapshot().outcomes.completed > 60);
    expect((await load.endAct("after")).result).toMatchObject({ rejected: 0, cut: 0, lost: 0, doubled: 0, problems: [] });
    expect((await fleet.serving()).length).toBe(3);
  },
  TIMEOUT_MS,
);

test(
  "a gateway cut off from the controller for longer than its TTL serves on, while its instance is replaced: the seal is assumed, the door shut, nothing lost without a word (D18, D19)",
  async () => {
    fleet = await startFleet();
    const wire = await Wire.to(fleet.url);
    const cut = await fleet.gateway(wire.url);
    await fleet.gateway();
    await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
    const [victim] = await fleet.serving();
    const load = fleet.load(cut.url, SHORT);
    load.startAct("cut off");
    await fleet.until("it is under load", () => load.snapshot().outcomes.completed > 60);
    const known = cut.report().routes[0]?.applied;

    wire.cut();
    await fleet.until("its silence counts", async () =>
      (await fleet.controlPlane.listGateways()).some(({ replica, silent }) => replica === cut.replica && silent),
    );
    await fleet.cluster.provisioner.drift(victim?.incarnation.nodeName ?? "");
    await fleet.until("it is replaced", async () => (await fleet.instance(victim?.id ?? "")).phase === "deleted");
    const completed = load.snapshot().outcomes.completed;
    await fleet.until("it serves on", () => load.snapshot().outcomes.completed > completed + 60);
    const { result } = await load.endAct("cut off");

    expect(cut.report().routes[0]?.applied).toBe(known);
    expect(await fleet.instance(victim?.id ?? "")).toMatchObject({ seal: "assumed", drainLoss: "voluntary" });
    expect((await fleet.controlPlane.listPools())[0]?.losses).toEqual([
      { loss: "voluntary", instances: 1, obligations: 0, assumedSeals: 1 },
    ]);
    expect(result).toMatchObject({ cut: 0, lost: 0, doubled: 0, byKind: { order: { rejected: 0, cut: 0, lost: 0 } } });
    // Outside the zero-loss claim: what was on its way to the instance as its process ended is told so, unless it may be tried again.
    for (const { kind, detail } of result.problems) expect(`${kind} ${detail}`).toBe("charge 502 answer_lost");

    wire.mend();
    await fleet.until(
      "it is told of all that changed",
      () => cut.report().routes[0]?.members.every(({ instance }) => instance !== victim?.id) === true,
    );
    await wire.close();
  },
  TIMEOUT_MS,
);
