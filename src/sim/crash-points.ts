/**
 * Crash points: a controller that dies at any of its port calls, before the effect, between the effect and hearing of it, or after it, must leave the same
 * end state as one that does not. The calls are those that really happen in a run without a crash, so what is new is covered at once.
 */
import { RelevoError } from "../kernel/errors.ts";
import type { KubeObject, KubeObjectDraft } from "../kube/api.ts";
import { DEPLOYMENTS, NODES, PODS } from "../kube/resources.ts";
import { ANNOTATIONS, LABELS } from "../model/marks.ts";
import type { ControlPlane } from "../server/control-plane.ts";
import type { Fault } from "./faults.ts";
import { installGuards } from "./guards.ts";
import { Injector } from "./inject.ts";
import { converges } from "./liveness.ts";
import type { Side } from "./process.ts";
import { createCheckedWorld, type Violation } from "./run-seed.ts";
import type { Scenario } from "./scenario.ts";
import type { World, WorldOptions } from "./world.ts";

/** What is done to a pool, in one window of time: from there on, until it is as it should be, the controller may die. */
export interface CrashCase {
  readonly name: string;
  readonly scenario: Scenario;
  /** Before the window: each settles before the next begins. */
  readonly before?: readonly Deed[];
  /** All at the beginning of the window. */
  readonly deeds: readonly Deed[];
  /** Until it shows: before that all looks as it should be, and is not. Virtual ms. */
  readonly showsAfterMs: number;
  /** How long the requests last that are in flight when the window begins, virtual ms. */
  readonly requestMs: number;
}

/** `start`: the pool is made, nothing is there before. */
export type Deed =
  | "start"
  | Fault
  /** An operator drains the first instance. */
  | { readonly kind: "drain" }
  /** An operator lets the cordoned node take pods again. */
  | { readonly kind: "uncordon" }
  /** Objects that a store of before made and this one does not know; an operator recovers the store. */
  | { readonly kind: "recover" };

/** What must be the same. Names and times may differ, numbers may not. */
export interface EndState {
  /** Each living instance: pool, ordinal, phase, seal of its writer. */
  readonly instances: readonly string[];
  /** Instances that were ever made: a second one for the same reason is one too many. */
  readonly made: number;
  /** Objects in the cluster, by kind and by what they belong to. */
  readonly objects: readonly string[];
  /** Nodes that Relevo cordoned. */
  readonly cordons: number;
  readonly losses: readonly string[];
  /** What became of the requests that were in flight. */
  readonly requests: readonly string[];
}

export interface PortCall {
  /** Counted from the beginning of the window. */
  readonly number: number;
  /** `store commit record create_instance/1`, `patch pods/…`. */
  readonly what: string;
}

export interface Rehearsal {
  readonly calls: readonly PortCall[];
  /** Kinds of steps that were recorded in the window. */
  readonly stepKinds: ReadonlySet<string>;
  readonly end: EndState;
  readonly violations: readonly Violation[];
}

export interface CrashPoint {
  /** Number of the call. */
  readonly call: number;
  readonly side: Side;
}

export const SIDES: readonly Side[] = ["before", "after", "heard"];

/** Calls that change nothing outside: before and after them are the same. */
const WITHOUT_EFFECT = /^(watch|get|list|store (read|list|get|count|find)\w*|instance (health|identity|obligations))\b/;

/** Every point at which the controller of this run may die. */
export function crashPointsOf({ calls }: Rehearsal): readonly CrashPoint[] {
  return calls.flatMap(({ number, what }) =>
    WITHOUT_EFFECT.test(what) ? [{ call: number, side: "before" as const }] : SIDES.map((side) => ({ call: number, side })),
  );
}

const SEED = 1;
const DOWN_MS = 300;
const SETTLE_WITHIN_MS = 300_000;
/** What is still under way when all is as it should be: absent objects, a first report after a restart. */
const STAY_MS = 15_000;
const QUIET_MS = 3_000;
const COMMAND_TRIES = 50;
const COMMAND_PAUSE_MS = 200;

/** The run without a crash. */
export function rehearse(crashCase: CrashCase, compose: WorldOptions["compose"]): Promise<Rehearsal> {
  return run(crashCase, compose, undefined);
}

/** The same run with one crash. */
export async function crashAt(crashCase: CrashCase, compose: WorldOptions["compose"], point: CrashPoint): Promise<Rehearsal> {
  return run(crashCase, compose, point);
}

async function run(crashCase: CrashCase, compose: WorldOptions["compose"], point: CrashPoint | undefined): Promise<Rehearsal> {
  const lift = installGuards();
  try {
    return await runGuarded(crashCase, compose, point);
  } finally {
    lift();
  }
}

async function runGuarded(crashCase: CrashCase, compose: WorldOptions["compose"], point: CrashPoint | undefined): Promise<Rehearsal> {
  const violations: Violation[] = [];
  const calls: PortCall[] = [];
  const stepKinds = new Set<string>();
  let isInWindow = false;
  const { world, violate } = await createCheckedWorld(
    SEED,
    {
      compose,
      scenario: crashCase.scenario,
      told: (event) => {
        if (event.type !== "committed" || !isInWindow) return;
        for (const change of event.changes) if (change.kind === "record_step") stepKinds.add(change.step.kind);
      },
    },
    violations,
  );
  const injector = new Injector(world);
  const settle = async (what: string): Promise<void> => {
    const { missing } = await converges(world, SETTLE_WITHIN_MS, injector);
    if (missing.length > 0) violate("I16", `${what}: ${missing.join("; ")}`);
  };
  const isStart = crashCase.deeds.includes("start");
  if (!isStart) {
    await world.start();
    await settle("before the window");
    for (const deed of crashCase.before ?? []) {
      await perform(deed, world, injector);
      await settle("before the window");
    }
    await world.clock.advance(QUIET_MS);
  }
  const requests = holdRequests(world, crashCase.requestMs);
  if (isStart) await world.start();
  isInWindow = true;
  world.controllers.watchCalls((number, what) => calls.push({ number, what }));
  if (point !== undefined) world.controllers.crash(point.call, point.side, DOWN_MS);
  for (const deed of crashCase.deeds) await perform(deed, world, injector);
  await world.clock.advance(crashCase.showsAfterMs);
  await settle("after the window");
  isInWindow = false;
  await world.clock.advance(Math.max(STAY_MS, crashCase.requestMs));
  await settle("at the end");
  const end = await endStateOf(world, requests);
  await world.close();
  return { calls, stepKinds, end, violations };
}

async function perform(deed: Deed, world: World, injector: Injector): Promise<void> {
  if (deed === "start") return;
  if (deed.kind === "drain") return drain(world);
  if (deed.kind === "uncordon") return uncordon(world);
  if (deed.kind === "recover") return recover(world);
  injector.inject(deed);
}

function drain(world: World): void {
  const instance = world.mirror.living().find(({ phase }) => phase === "serving")?.id;
  if (instance === undefined) throw new RelevoError("no_instance", "nobody serves: the case does not do what it says");
  command(world, (controlPlane) => controlPlane.drain({ instance, by: "an operator", why: "a test" }));
}

async function uncordon(world: World): Promise<void> {
  const node = world.cluster.store.list(NODES).items.find(({ metadata }) => metadata.annotations?.[ANNOTATIONS.cordonedBy] !== undefined);
  if (node === undefined) throw new RelevoError("no_cordon", "no node is cordoned: the case does not do what it says");
  command(world, (controlPlane) => controlPlane.uncordon(node.metadata.name, "an operator"));
}

async function recover(world: World): Promise<void> {
  const [known] = world.cluster.store.list(DEPLOYMENTS).items;
  const instance = known?.metadata.labels?.[LABELS.instance];
  if (known === undefined || instance === undefined)
    throw new RelevoError("no_deployment", "there is nothing that a stranger could look like");
  const { name, namespace, labels } = known.metadata;
  const draft = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace, labels }, spec: known["spec"] };
  const stranger = JSON.parse(JSON.stringify(draft).replaceAll(instance, "orders-stranger")) as KubeObjectDraft;
  const annotations = { [ANNOTATIONS.step]: "create/orders-stranger" };
  await world.cluster.api.create(DEPLOYMENTS, { ...stranger, metadata: { ...stranger.metadata, annotations } }, { namespace });
  // Kubernetes keeps whole seconds: it must be seen to be older than the recovery.
  world.clock.after(2_000, () =>
    command(world, (controlPlane) => controlPlane.recoverStore({ why: "a test", by: "an operator", force: true })),
  );
}

/** As an operator does: again until it is answered. */
function command(world: World, work: (controlPlane: ControlPlane) => Promise<unknown>, tries = COMMAND_TRIES): void {
  world.controllers.call(work).catch(() => {
    if (tries > 0) world.clock.after(COMMAND_PAUSE_MS, () => command(world, work, tries - 1));
  });
}

/** Each replica holds some at whatever members there are. */
function holdRequests(world: World, durationMs: number): readonly string[] {
  const outcomes: string[] = [];
  for (const { route } of world.scenario.pools)
    for (const replica of world.gateways)
      for (let count = 0; count < 4; count++)
        replica?.ask({ route, durationMs, isIdempotent: false, streams: true, done: (outcome) => outcomes.push(`${route} ${outcome}`) });
  return outcomes;
}

async function endStateOf(world: World, requests: readonly string[]): Promise<EndState> {
  const ordinals = new Map<string, string>();
  const instances: string[] = [];
  const losses: string[] = [];
  for (const { key } of world.scenario.pools) {
    const rows = await world.rows(key);
    for (const { id, ordinal, phase } of rows?.instances ?? []) {
      const writes = rows?.workloads.some(({ holder }) => holder?.instance === id) === true;
      ordinals.set(id, `${key} ${ordinal}`);
      instances.push(`${key} ${ordinal} ${phase}${writes ? " writes" : ""}`);
    }
    for (const { loss, instances: count, obligations, assumedSeals } of await world.store.countLosses(key))
      losses.push(`${key} ${loss}: ${count} instances, ${obligations} obligations, ${assumedSeals} assumed`);
  }
  const objects = [DEPLOYMENTS, PODS].flatMap((type) => world.cluster.store.list(type).items.map((object) => describe(object, ordinals)));
  const cordoned = world.cluster.store
    .list(NODES)
    .items.filter(({ metadata }) => metadata.annotations?.[ANNOTATIONS.cordonedBy] !== undefined);
  return {
    instances: instances.toSorted(),
    made: world.mirror.instances.size,
    objects: objects.toSorted(),
    cordons: cordoned.length,
    losses: losses.toSorted(),
    requests: requests.toSorted(),
  };
}

function describe({ kind, metadata }: KubeObject, ordinals: ReadonlyMap<string, string>): string {
  const owner = ordinals.get(metadata.labels?.[LABELS.instance] ?? "") ?? "nobody";
  const isProtected = metadata.annotations?.[ANNOTATIONS.protectedBy] !== undefined;
  return `${kind} of ${owner}${isProtected ? ", protected" : ""}`;
}
