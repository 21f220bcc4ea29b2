/**
 * `relevo demo`: the main job on one machine. A pool of real processes outlives its nodes while a real client counts; then the control, which must lose.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Random } from "../../kernel/random.ts";
import type { ControllerClient } from "../client.ts";
import type { Stack } from "../processes/stack.ts";
import { ACTS, type ActName, controllerKilled, deadline, forced, type PlayedAct, playAct, type Stage, voluntary } from "./acts.ts";
import { playControl } from "./control.ts";
import { watchDuplicates } from "./duplicates.ts";
import { startFleet } from "./fleet.ts";
import { LoadProcess } from "./load/client-process.ts";
import type { Narrator } from "./narrator.ts";
import { type DemoReport, reportOf } from "./report.ts";

const POOL = "default/orders";
const CONTROL_POOL = "default/orders-control";
const WARM_UP_MS = 4_000;
const DESIRED = 4;

export interface DemoOptions {
  /** Where the run file goes. */
  readonly cwd: string;
  /** From the notice to the loss of the machine. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
  readonly logLevel: string;
}

export interface RunningDemo {
  readonly report: DemoReport;
  readonly stack: Stack;
  stop(): Promise<void>;
}

/** Plays everything and leaves the fleet running; `stop` ends it. */
export async function playMainJob(options: DemoOptions): Promise<RunningDemo> {
  const { clock, narrator, signal } = options;
  const startedAt = clock.monotonic();
  narrator.title("starting: embedded cluster (6 nodes, 2 zones), controller, gateway");
  const fleet = await startFleet({
    cwd: options.cwd,
    nodes: 6,
    spotLeadMs: options.deadlineMs,
    clock,
    ids: options.ids,
    signal,
    logLevel: options.logLevel,
    onDeath: (name, how) => narrator.tell(`the process ${name} ended (${how}) and is started again`),
  });
  const { stack, world, undo } = fleet;

  try {
    const duplicates = await watchDuplicates({ kube: fleet.kube, clock, random: options.random });
    undo.push(() => duplicates.stop());
    const over = new AbortController();
    undo.push(() => over.abort());
    void narrate(fleet.client, narrator, clock, AbortSignal.any([signal, over.signal]));

    narrator.title("the pool orders: 4 real processes behind the gateway");
    await fleet.addPool({ name: "orders", mode: "Act" }, DESIRED);
    const load = await LoadProcess.start(fleet.loadOf("orders"));
    undo.push(() => load.kill());
    const stage: Stage = {
      world,
      load,
      supervisor: stack.supervisor,
      clock,
      pool: POOL,
      desired: DESIRED,
      deadlineMs: options.deadlineMs,
      signal,
      tell: (sentence) => narrator.tell(sentence),
      progress: (act, counts) => narrator.counts(act, counts),
    };

    narrator.title("load: short requests, streams, WebSockets, transactions; first a stretch that nobody disturbs");
    await clock.sleep(WARM_UP_MS, signal);
    const undisturbed = await playAct(stage, "undisturbed", async () => undefined);
    const played = await playActs(stage, narrator);
    const base = await undisturbed.over;

    const evidence = await world.evidence(POOL);

    narrator.title("control: the same acts with disruption.mode Off, on a pool of its own");
    await fleet.addPool({ name: "orders-control", mode: "Off" }, DESIRED);
    const control = await playControl({ ...stage, pool: CONTROL_POOL }, fleet.loadOf("orders-control"));
    narrator.tell(`control: ${summaryOf(control)}`);
    await fleet.removePool("orders-control");
    await load.stop();

    const report = reportOf({
      acts: Object.fromEntries(ACTS.map((name) => [name, played[name].result])) as Record<ActName, PlayedAct["result"]>,
      undisturbed: base.result,
      control,
      servingNeverBelow: played.voluntary.servingNeverBelow,
      desired: DESIRED,
      evidence,
      duplicatesCreated: duplicates.count(),
      durationMs: clock.monotonic() - startedAt,
    });
    return { report, stack, stop: () => fleet.stop() };
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

async function playActs(stage: Stage, narrator: Narrator): Promise<Readonly<Record<ActName, PlayedAct>>> {
  const scripts: Readonly<Record<ActName, { readonly title: string; readonly happen: () => Promise<void> }>> = {
    voluntary: { title: "act 1, voluntary: a node drifts", happen: () => voluntary(stage) },
    deadline: { title: `act 2, deadline: a spot interruption in ${stage.deadlineMs / 1000} s`, happen: () => deadline(stage) },
    forced: { title: "act 3, forced: a node dies without notice", happen: () => forced(stage) },
    controller: { title: "act 4, controller: killed between two steps of a replacement", happen: () => controllerKilled(stage) },
  };
  const played: Partial<Record<ActName, Promise<PlayedAct>>> = {};
  for (const name of ACTS) {
    // What still runs of an act that promises no loss must have ended before somebody is killed; the others may overlap with its end.
    if (name === "forced") await Promise.all(Object.values(played));
    narrator.title(scripts[name].title);
    const act = await playAct(stage, name, scripts[name].happen);
    played[name] = act.over.then((over) => {
      narrator.tell(`${name}: ${summaryOf(over.result)}`);
      return over;
    });
    played[name].catch(() => undefined); // awaited below
  }
  return Object.fromEntries(await Promise.all(ACTS.map(async (name) => [name, await played[name]]))) as Record<ActName, PlayedAct>;
}

/** What an act came to, in one line: the table at the end has the rest. */
function summaryOf({ sent, completed, queued, retried, rejected, cut, lost }: PlayedAct["result"]): string {
  return `${sent} sent, ${completed} completed (${queued} queued, ${retried} retried), ${rejected} rejected, ${cut} cut, ${lost} lost`;
}

/** Writes to the terminal what the controller tells, through its restarts. */
async function narrate(client: ControllerClient, narrator: Narrator, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const entry of client.watch(POOL, signal)) if (entry) narrator.journal(entry);
    } catch {
      // The controller is down for a moment: the watch stands again when it is back.
    }
    await clock.sleep(200, signal).catch(() => undefined);
  }
}
