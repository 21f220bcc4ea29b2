/**
 * The acts of the demo. Each does one thing to a node (or to the controller) under load and waits for its effect, never for the command's answer; what it
 * cost is counted by the client alone.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Supervisor } from "../processes/supervisor.ts";
import type { RequestTrace, LoadSnapshot } from "./load/client.ts";
import type { LoadProcess } from "./load/client-process.ts";
import type { ActResult } from "./load/tally.ts";
import type { DemoWorld } from "./world.ts";

export const ACTS = ["voluntary", "deadline", "forced", "controller"] as const;
export type ActName = (typeof ACTS)[number];

/** From the taking of a node to a fleet that is whole again. */
const REPLACED_WITHIN_MS = 45_000;
/** A 99th percentile of fewer short requests than come in this time would be a single slow one. */
const MIN_ACT_MS = 9_000;

export interface Stage {
  readonly world: DemoWorld;
  readonly load: LoadProcess;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly pool: string;
  readonly desired: number;
  /** Of the interruption's notice. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  readonly tell: (sentence: string) => void;
  /** Told while an act waits, for the line of counts. */
  readonly progress: (act: string, counts: LoadSnapshot) => void;
}

export interface PlayedAct {
  readonly result: ActResult;
  readonly traces: readonly RequestTrace[];
  /** The lowest number serving that was seen while it ran. */
  readonly servingNeverBelow: number;
}

/** An act whose window is closed; its last requests may still run, and what they come to belongs to it. */
export interface ClosedAct {
  readonly over: Promise<PlayedAct>;
}

/** Runs one act: from its first request until what happens has happened. */
export async function playAct(stage: Stage, name: ActName | "undisturbed", happen: () => Promise<void>): Promise<ClosedAct> {
  const watch = watchServing(stage, name);
  const enough = stage.clock.monotonic() + MIN_ACT_MS;
  await stage.load.startAct(name);
  await happen();
  await stage.clock.sleep(Math.max(0, enough - stage.clock.monotonic()), stage.signal);
  const ended = stage.load.endAct(name);
  const servingNeverBelow = await watch.stop();
  const over = ended.then(({ result, traces }) => ({ result, traces, servingNeverBelow }));
  over.catch(() => undefined); // whoever awaits it hears of it
  return { over };
}

/** A node drifts: evidence, cordon, surge, admit, drain, seal, retire, delete. */
export async function voluntary(stage: Stage): Promise<void> {
  const { world, pool } = stage;
  const { node, instance } = await world.victim(pool);
  stage.tell(`${node.name} drifts (its NodeClaim says so); ${instance} lives there`);
  await world.drift(node.name);
  await gone(stage, instance);
  await whole(stage);
}

/** A spot interruption warning for a node: its machine is taken at the deadline, whoever was told. */
export async function deadline(stage: Stage): Promise<void> {
  const { world, pool, clock } = stage;
  const { node, instance } = await world.victim(pool);
  stage.tell(`EventBridge: the machine under ${node.name} is taken in ${stage.deadlineMs / 1000} s; ${instance} lives there`);
  const takenAt = clock.monotonic() + stage.deadlineMs;
  await world.interrupt(node.name, stage.deadlineMs);
  await gone(stage, instance);
  await whole(stage);
  await clock.sleep(Math.max(0, takenAt - clock.monotonic()), stage.signal);
  await world.until(`the end of ${node.name}`, REPLACED_WITHIN_MS, async () =>
    (await world.nodes()).every(({ name, ready }) => name !== node.name || !ready),
  );
  stage.tell(`the machine under ${node.name} was taken at its deadline`);
}

/** SIGKILL to every process of a node, and nobody was told. */
export async function forced(stage: Stage): Promise<void> {
  const { world, pool } = stage;
  const { node, instance } = await world.victim(pool);
  stage.tell(`SIGKILL to every process of ${node.name}, without notice; ${instance} lived there`);
  await world.kill(node.name);
  await world.until(`evidence against ${instance}`, REPLACED_WITHIN_MS, async () =>
    (await world.evidence(pool)).some((each) => each.instance === instance),
  );
  await whole(stage);
}

/** A node drifts, and the controller is killed between two steps of the replacement: after the create, before the admission. */
export async function controllerKilled(stage: Stage): Promise<void> {
  const { world, pool, supervisor } = stage;
  const { node, instance } = await world.victim(pool);
  stage.tell(`${node.name} drifts; the controller will be killed once the replacement of ${instance} was created`);
  const before = new Set((await world.instances(pool)).map(({ id }) => id));
  await world.drift(node.name);
  await world.until("the create step", REPLACED_WITHIN_MS, async () => {
    const fresh = (await world.instances(pool)).find(({ id }) => !before.has(id));
    return fresh !== undefined && fresh.phase !== "pending" && fresh.phase !== "creating";
  });
  const restarted = supervisor.whenRestarted("controller");
  const pid = supervisor.pidOf("controller");
  if (pid !== undefined) process.kill(pid, "SIGKILL");
  stage.tell("SIGKILL to the controller");
  await restarted;
  stage.tell("the controller is back");
  await gone(stage, instance);
  await whole(stage);
}

async function gone({ world, pool }: Stage, instance: string): Promise<void> {
  await world.until(`the end of ${instance}`, REPLACED_WITHIN_MS, async () => {
    const found = (await world.instances(pool)).find(({ id }) => id === instance);
    return found?.phase === "deleted";
  });
}

async function whole({ world, pool, desired }: Stage): Promise<void> {
  await world.until(`${desired} serving instances`, REPLACED_WITHIN_MS, async () => (await world.serving(pool)) >= desired);
}

/** Looks at the pool and at the client's counts until it is told to stop. */
function watchServing({ world, load, clock, pool, desired, progress }: Stage, name: string): { stop(): Promise<number> } {
  let lowest = desired;
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      // The controller may be down for a moment; what cannot be read is no count.
      const serving = await world.serving(pool).catch(() => desired);
      lowest = Math.min(lowest, serving);
      const counts = await load.snapshot();
      // Once the act has ended, and waits for its last requests, the counts are those of nothing.
      if (counts.act === name) progress(name, counts);
      await clock.sleep(200);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await done;
      return lowest;
    },
  };
}
