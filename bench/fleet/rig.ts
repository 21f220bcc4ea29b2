/** A fleet under load, as a bench of the whole product needs it: the real three processes, the example's pool, a client that counts, and the journal. */
import { type Fleet, startFleet } from "../../src/cli/demo/fleet.ts";
import { LoadProcess } from "../../src/cli/demo/load/client-process.ts";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { poolSchema } from "../../src/model/pool.ts";
import type { JournalView } from "../../src/server/views.ts";
import { say } from "./machine.ts";

export const POOL = "default/orders";
export const DESIRED = 4;
const NODES = 6;
const WARM_UP_MS = 15_000;

/** 300 short requests a second, half of them idempotent, and a few of what holds an instance for longer. */
export const MIX: Mix = {
  perSecond: { order: 150, charge: 150, export: 1, live: 0.5, tx: 0.5 },
  exportSeconds: [1, 3],
  liveSeconds: [1, 3],
  txSeconds: [1, 3],
  stepMs: 400,
  http2Share: 0.3,
};

export interface Transition {
  /** Wall time of the commit, ms since the epoch. */
  readonly at: number;
  readonly instance: string;
  /** A phase, or `new_incarnation`. */
  readonly phase: string;
}

export interface Rig {
  readonly fleet: Fleet;
  readonly load: LoadProcess;
  /** Of the pool's instances, in the order of their commits. */
  readonly transitions: readonly Transition[];
  /** How long one try of an idempotent request may take, by the pool as it was applied. */
  readonly perTryTimeoutMs: number;
  /** Until all that is desired serves. */
  whole(): Promise<void>;
  stop(): Promise<void>;
}

export const WHOLE_WITHIN_MS = 60_000;

/** Started, warm and under load. */
export async function startRig(name: string): Promise<Rig> {
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  process.once("SIGTERM", () => interrupted.abort());
  const fleet = await startFleet({
    cwd: null,
    nodes: NODES,
    spotLeadMs: 120_000,
    clock: systemClock,
    ids: systemIds,
    signal: interrupted.signal,
    logLevel: "warn",
    onDeath: (process, how) => say(name, `the process ${process} ended (${how})`),
  });
  try {
    const over = new AbortController();
    fleet.undo.push(() => over.abort());
    await fleet.addPool({ name: "orders", mode: "Act" }, DESIRED);
    const transitions: Transition[] = [];
    void keepTransitions(fleet, transitions, over.signal);
    const load = await LoadProcess.start({ ...fleet.loadOf("orders"), mix: MIX });
    fleet.undo.push(() => load.kill());
    await systemClock.sleep(WARM_UP_MS, interrupted.signal);
    return {
      fleet,
      load,
      transitions,
      perTryTimeoutMs: await perTryTimeoutOf(fleet),
      whole: () =>
        fleet.world.until(`${DESIRED} serving instances`, WHOLE_WITHIN_MS, async () => (await fleet.world.serving(POOL)) >= DESIRED),
      stop: () => fleet.stop(),
    };
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

async function perTryTimeoutOf({ kube }: Fleet): Promise<number> {
  const pool = poolSchema.parse(await kube.get({ type: POOLS, namespace: "default", name: "orders" }));
  return pool.spec.traffic.perTryTimeout;
}

async function keepTransitions(fleet: Fleet, transitions: Transition[], signal: AbortSignal): Promise<void> {
  for await (const entry of fleet.client.watch(POOL, signal)) {
    const transition = entry === undefined ? undefined : transitionOf(entry);
    if (transition !== undefined) transitions.push(transition);
  }
}

function transitionOf(entry: JournalView): Transition | undefined {
  return entry.kind === "phase" ? { at: Date.parse(entry.at), instance: entry.subject, phase: entry.code } : undefined;
}
