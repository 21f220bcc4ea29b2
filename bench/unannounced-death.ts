/**
 * Unannounced death under 300 requests a second: SIGKILL to a whole node, SIGKILL to one instance's process, and SIGSTOP of an instance's process, which
 * goes on taking connections so that only a time-out sees it. Counted are the requests in flight at the moment or started within a second of it,
 * against undisturbed stretches of the same run. Prints one JSON document.
 *
 * Targets: no idempotent request fails; added p99 of the idempotent ones at most 250 ms at SIGKILL, 1.5 s at SIGSTOP. Any other request that the dead
 * process held gets an explicit error or, while it is only stopped, waits until the instance is given up: those are told, not judged.
 */
import type { RequestTrace } from "../src/cli/demo/load/client.ts";
import type { RequestKind } from "../src/cli/demo/load/outcome.ts";
import { systemClock } from "../src/kernel/system.ts";
import { pidOfInstance } from "./fleet/process-of.ts";
import { loadAverage, say } from "./fleet/machine.ts";
import { MIX, POOL, type Rig, startRig, WHOLE_WITHIN_MS } from "./fleet/rig.ts";
import { added, latencyOf, type Window, within } from "./fleet/windows.ts";

const NAME = "unannounced-death";
const ROUNDS = 10;
const AFTER_MS = 1_000;
/** Until the fleet, whole again, has also cleared what died; then so long undisturbed. */
const SETTLE_MS = 2_000;
const CALM_MS = 3_000;
/** A process that is killed again and again waits longer each time before it is started, as in Kubernetes: so not the same one twice in a row. */
const SPARED = 2;
const IDEMPOTENT: readonly RequestKind[] = ["order"];
const TARGET = { idempotentFailed: 0, killP99AddedMs: 250, stopP99AddedMs: 1_500 };

const DEATHS = ["killNode", "killProcess", "stopProcess"] as const;
type Death = (typeof DEATHS)[number];
/** All of them, or those named on the command line. */
const CHOSEN: readonly Death[] = process.argv.length > 2 ? DEATHS.filter((death) => process.argv.includes(death, 2)) : DEATHS;

interface Phase {
  readonly deaths: readonly Window[];
  readonly calm: readonly Window[];
  readonly traces: readonly RequestTrace[];
  readonly wholeAgainMs: readonly number[];
  readonly loads: readonly number[];
}

const rig = await startRig(NAME);
try {
  const phases = new Map<Death, Phase>();
  for (const death of CHOSEN) phases.set(death, await play(death));
  report(phases);
} finally {
  await rig.stop();
}

async function play(death: Death): Promise<Phase> {
  const deaths: Window[] = [];
  const calm: Window[] = [];
  const wholeAgainMs: number[] = [];
  const loads: number[] = [];
  const struck: string[] = [];
  await rig.load.startAct(death, MIX);
  for (let round = 0; round < ROUNDS; round++) {
    await systemClock.sleep(SETTLE_MS);
    calm.push({ at: systemClock.now() + 500, beforeMs: 0, afterMs: CALM_MS - 1_000 });
    await systemClock.sleep(CALM_MS);
    const victim = await rig.fleet.world.victim(POOL, new Set(struck.slice(-SPARED)));
    struck.push(victim.node.name);
    const seen = rig.transitions.length;
    const at = await strike(death, victim);
    deaths.push({ at, beforeMs: 0, afterMs: AFTER_MS });
    await recovered(rig, victim.instance, seen);
    wholeAgainMs.push(Math.round(systemClock.now() - at));
    if (death === "stopProcess") endStopped(victim.instance);
    loads.push(loadAverage());
  }
  const { traces } = await rig.load.endAct(death);
  say(NAME, `${death}: ${ROUNDS} rounds; whole again after ${wholeAgainMs.join(", ")} ms`);
  return { deaths, calm, traces, wholeAgainMs, loads };
}

/** Settles with the moment just before, ms since the epoch. */
async function strike(death: Death, { node, instance }: Awaited<ReturnType<Rig["fleet"]["world"]["victim"]>>): Promise<number> {
  if (death === "killNode") {
    const at = systemClock.now();
    await rig.fleet.world.kill(node.name);
    return at;
  }
  const pid = pidOfInstance(instance);
  const at = systemClock.now();
  process.kill(pid, death === "killProcess" ? "SIGKILL" : "SIGSTOP");
  return at;
}

/** The controller saw it, and all that is desired serves again. */
async function recovered({ fleet, transitions, whole }: Rig, instance: string, seen: number): Promise<void> {
  await fleet.world.until(`a word about ${instance}`, WHOLE_WITHIN_MS, async () =>
    transitions.slice(seen).some((transition) => transition.instance === instance),
  );
  await whole();
}

/** A stopped process hears no SIGTERM and would stay for its whole grace. */
function endStopped(instance: string): void {
  try {
    process.kill(pidOfInstance(instance), "SIGKILL");
  } catch {
    // The cluster was quicker.
  }
}

function report(phases: ReadonlyMap<Death, Phase>): void {
  const all = [...phases.values()];
  const base = latencyOf(
    all.flatMap(({ traces, calm }) => within(traces, calm)),
    IDEMPOTENT,
  );
  const figures: Partial<Record<Death, ReturnType<typeof figuresOf>>> = {};
  for (const [death, phase] of phases) figures[death] = figuresOf(phase, base.p99Ms);
  const idempotentFailed = CHOSEN.reduce<number>((sum, death) => sum + (figures[death]?.idempotentFailed ?? 0), 0);
  const killP99AddedMs = worst([figures.killNode?.p99AddedMs, figures.killProcess?.p99AddedMs]);
  const stopP99AddedMs = worst([figures.stopProcess?.p99AddedMs]);
  const held = {
    idempotentFailed: idempotentFailed <= TARGET.idempotentFailed,
    killP99AddedMs: killP99AddedMs !== null && killP99AddedMs <= TARGET.killP99AddedMs,
    stopP99AddedMs: stopP99AddedMs !== null && stopP99AddedMs <= TARGET.stopP99AddedMs,
  };
  const result = {
    bench: NAME,
    rounds: ROUNDS,
    perTryTimeoutMs: rig.perTryTimeoutMs,
    idempotentFailed,
    killP99AddedMs,
    stopP99AddedMs,
    undisturbed: base,
    ...figures,
    target: TARGET,
    held,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (!held.idempotentFailed) process.exitCode = 1;
}

function figuresOf({ deaths, traces, wholeAgainMs, loads }: Phase, baseP99Ms: number | null) {
  const felt = within(traces, deaths);
  const latency = latencyOf(felt, IDEMPOTENT);
  const failed = (kinds: readonly RequestKind[]) => traces.filter(({ kind, outcome }) => kinds.includes(kind) && outcome !== "completed");
  return {
    p99AddedMs: added(latency.p99Ms, baseP99Ms),
    ...latency,
    idempotentSent: traces.filter(({ kind }) => IDEMPOTENT.includes(kind)).length,
    idempotentFailed: failed(IDEMPOTENT).length,
    retried: felt.filter(({ retried }) => retried).length,
    // Of the others, told: each has its explicit error, and none is lost.
    others: countByOutcome(failed(["charge", "export", "live", "tx"])),
    wholeAgainMs,
    loadAverage: loads,
    problems: failed(IDEMPOTENT)
      .slice(0, 10)
      .map(({ id, outcome, detail, durationMs }) => ({ id, outcome, detail, durationMs })),
  };
}

function countByOutcome(traces: readonly RequestTrace[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind, outcome } of traces) counts[`${kind} ${outcome}`] = (counts[`${kind} ${outcome}`] ?? 0) + 1;
  return counts;
}

/** Null when one of them was not measured. */
function worst(values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => typeof value === "number");
  return known.length < values.length ? null : Math.max(...known);
}
