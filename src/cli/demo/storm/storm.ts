/**
 * `relevo demo storm`: most nodes of a fleet of real processes are announced to go within a few seconds, while clients go on; then the control, which must
 * lose: the same with `disruption.mode: Off`.
 */
import { PRIORITIES, type Priority } from "../../../model/membership.ts";
import { POOLS, PRIORITY_CLASSES } from "../../../kube/resources.ts";
import { type NodeView, poolView } from "../../../server/views.ts";
import { type Evacuee, type Fate, fatesOf, outcomeOf } from "../../storm/evacuation.ts";
import { type Fleet, startFleet } from "../fleet.ts";
import type { DemoOptions } from "../main-job.ts";
import type { Stack } from "../../processes/stack.ts";
import { countsBetween, type StormCounts, StormLoad } from "./load.ts";
import { priorityClass, stormPool } from "./pools.ts";
import { type StormReport, stormReportOf } from "./report.ts";
import { scaleOf, type StormScale } from "./scale.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"];
/** One machine starts all these processes: more at once would only make each of them, the critical ones too, late. */
const ABSORPTION = { perSecond: 2, burst: 4 };
const SERVING_WITHIN_MS = 120_000;
const WARM_UP_MS = 3_000;
/** All notices come within this. */
const NOTICED_WITHIN_MS = 3_000;
const REFILLED_WITHIN_MS = 60_000;
/** After the last node went: what was cut on the way has ended by then. */
const AFTERMATH_MS = 7_000;
/** Nobody listens to the notices here, so that a shorter one shows the same. */
const CONTROL_DEADLINE_MS = 4_000;
const POLL_MS = 250;

export interface StormOptions extends DemoOptions {
  readonly going: number;
}

export interface RunningStorm {
  readonly report: StormReport;
  readonly stack: Stack;
  stop(): Promise<void>;
}

/** Plays everything and leaves the fleet running; `stop` ends it. */
export async function playStorm(options: StormOptions): Promise<RunningStorm> {
  const { clock, narrator, signal } = options;
  const startedAt = clock.monotonic();
  const scale = scaleOf(options.going);
  narrator.title(`starting: embedded cluster (${scale.nodes} nodes, ${ZONES.length} zones), controller, gateway`);
  const fleet = await startFleet({
    cwd: options.cwd,
    nodes: scale.nodes,
    zones: ZONES,
    onDemand: scale.nodes,
    absorption: ABSORPTION,
    spotLeadMs: options.deadlineMs,
    clock,
    ids: options.ids,
    signal,
    logLevel: options.logLevel,
    onDeath: (name, how) => narrator.tell(`the process ${name} ended (${how}) and is started again`),
  });
  try {
    await applyPools(fleet, scale, options);
    const load = new StormLoad({
      gatewayUrl: fleet.stack.gatewayUrl,
      hosts: scale.pools.map(({ name, desired }) => ({ host: name, instances: desired })),
      clock,
      random: options.random,
    });
    fleet.undo.push(() => load.stop());
    load.start();
    await clock.sleep(WARM_UP_MS, signal);

    const storm = await playOneStorm(fleet, scale, load, options, "storm", options.deadlineMs);
    const nodesOnDemand = await onDemandNodes(fleet);
    const standbyRefilled = await isRefilled(fleet, scale);
    const obligationsLost = await obligationsLostIn(fleet, scale);

    narrator.title("control: the same with disruption.mode Off");
    await fleet.limitSpot(null);
    for (const { name } of scale.pools)
      await fleet.kube.patch({ type: POOLS, namespace: "default", name }, { spec: { disruption: { mode: "Off" } } });
    const control = await playOneStorm(fleet, scale, load, options, "control", CONTROL_DEADLINE_MS);
    const report = stormReportOf({
      scale,
      deadlineMs: options.deadlineMs,
      fates: storm.fates,
      requests: storm.counts,
      obligationsLost,
      unsavable: storm.unsavable,
      nodesOnDemand,
      standbyRefilled,
      control: control.counts,
      problems: storm.problems,
      durationMs: clock.monotonic() - startedAt,
    });
    await load.stop();
    return { report, stack: fleet.stack, stop: () => fleet.stop() };
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

async function applyPools(fleet: Fleet, scale: StormScale, { narrator }: StormOptions): Promise<void> {
  narrator.title(
    `three pools of light processes: ${scale.pools.map(({ name, desired, standby }) => `${name} ${desired} + ${standby} standby`).join(", ")}`,
  );
  for (const { priority } of scale.pools) await fleet.kube.create(PRIORITY_CLASSES, priorityClass(priority));
  for (const pool of scale.pools) await fleet.kube.create(POOLS, stormPool(pool), { namespace: "default" });
  for (const { name, desired, standby } of scale.pools) {
    await fleet.world.until(`${desired} serving and ${standby} standby of ${name}`, SERVING_WITHIN_MS, async () => {
      const pool = await fleet.client.get(`/v1/pools/default/${name}`, poolView);
      return pool.serving >= desired && pool.standby.ready >= standby;
    });
  }
}

interface PlayedStorm {
  readonly counts: StormCounts;
  readonly fates: readonly Fate[];
  readonly unsavable: readonly string[];
  readonly problems: readonly string[];
}

/** From the first notice until the last node is gone and all that was evacuated is done. */
async function playOneStorm(
  fleet: Fleet,
  scale: StormScale,
  load: StormLoad,
  options: StormOptions,
  name: "storm" | "control",
  deadlineMs: number,
): Promise<PlayedStorm> {
  const { clock, narrator, signal } = options;
  const before = load.counts();
  const told = load.problems().length;
  if (name === "storm") await fleet.limitSpot(0);
  const { evacuees, endsAt } = await announce(fleet, scale, options, deadlineMs);
  narrator.title(`${name}: ${scale.going} nodes are announced to go in ${deadlineMs / 1000} s, with ${evacuees.length} instances on them`);
  const watch = new FleetWatch(fleet, scale);
  let moved = "";
  let isWaiting = false;
  while (clock.monotonic() < endsAt) {
    await watch.look();
    const fates = fatesOf(evacuees, watch.seen, watch.servingSince);
    const now = movedOf(fates);
    if (now !== moved) narrator.tell(now);
    moved = now;
    if (!isWaiting && fates.every(({ servingAt }) => servingAt !== null)) {
      isWaiting = true;
      narrator.tell(`all have moved; the last node is taken in ${Math.ceil((endsAt - clock.monotonic()) / 1000)} s, and the load goes on`);
    }
    narrator.counts(name, asSnapshot(countsBetween(before, load.counts())));
    await clock.sleep(POLL_MS, signal);
  }
  for (const end = clock.monotonic() + AFTERMATH_MS; clock.monotonic() < end; await clock.sleep(POLL_MS, signal)) await watch.look();
  return {
    counts: countsBetween(before, load.counts()),
    fates: fatesOf(evacuees, await watch.instances(), watch.servingSince),
    unsavable: [...watch.unsavable.values()].toSorted(),
    problems: load.problems().slice(told),
  };
}

/** One notice after the other, the fullest nodes first, as a cloud that takes its capacity back. */
async function announce(
  { world }: Fleet,
  scale: StormScale,
  { clock, signal }: StormOptions,
  deadlineMs: number,
): Promise<{ readonly evacuees: readonly Evacuee[]; readonly endsAt: number }> {
  const served = new Map<string, { readonly pool: string; readonly priority: Priority; readonly ordinal: number }>();
  for (const { name, priority } of scale.pools) {
    const pool = `default/${name}`;
    for (const { id, phase, ordinal } of await world.instances(pool)) if (phase === "serving") served.set(id, { pool, priority, ordinal });
  }
  const nodes = fullest(await world.nodes(), served, scale.going);
  const evacuees: Evacuee[] = [];
  for (const node of nodes) {
    // Before it is sent: what is made before its sender hears back is no standby.
    const noticedAt = clock.now();
    await world.interrupt(node.name, deadlineMs);
    for (const instance of node.instances) {
      const found = served.get(instance);
      if (found) evacuees.push({ instance, ...found, node: node.name, noticedAt });
    }
    await clock.sleep(NOTICED_WITHIN_MS / scale.going, signal);
  }
  return { evacuees, endsAt: clock.monotonic() + deadlineMs };
}

function fullest(nodes: readonly NodeView[], served: ReadonlyMap<string, unknown>, count: number): readonly NodeView[] {
  const load = (node: NodeView): number => node.instances.filter((id) => served.has(id)).length;
  return nodes
    .filter(({ ready, deleting }) => ready && !deleting)
    .toSorted((a, b) => load(b) - load(a) || (a.name < b.name ? -1 : 1))
    .slice(0, count);
}

/** How far each class has moved. */
function movedOf(fates: readonly Fate[]): string {
  return PRIORITIES.map((priority) => {
    const { noticed, replaced, byStandby } = outcomeOf(fates.filter((fate) => fate.priority === priority));
    return `${priority} ${replaced} of ${noticed} moved (${byStandby} by standby)`;
  }).join(", ");
}

/** When each instance was first seen to serve, and whom the schedule called unsavable. */
class FleetWatch {
  readonly servingSince = new Map<string, number>();
  readonly unsavable = new Map<string, string>();
  /** At the last look that succeeded. */
  seen: Awaited<ReturnType<Fleet["world"]["instances"]>> = [];
  readonly #fleet: Fleet;
  readonly #scale: StormScale;

  constructor(fleet: Fleet, scale: StormScale) {
    this.#fleet = fleet;
    this.#scale = scale;
  }

  async instances(): ReturnType<Fleet["world"]["instances"]> {
    return (await Promise.all(this.#scale.pools.map(({ name }) => this.#fleet.world.instances(`default/${name}`)))).flat();
  }

  /** A look that fails is made up for by the next. */
  async look(): Promise<void> {
    this.seen = await this.instances().catch(() => this.seen);
    for (const { id, phase, phaseSince } of this.seen)
      if (phase === "serving" && !this.servingSince.has(id)) this.servingSince.set(id, Date.parse(phaseSince));
    for (const { name } of this.#scale.pools) {
      const pool = await this.#fleet.client.get(`/v1/pools/default/${name}`, poolView).catch(() => undefined);
      for (const { subject, code, sentence } of pool?.reasons ?? [])
        if (code === "evacuation_unsavable") this.unsavable.set(subject, `${subject}: ${sentence}`);
    }
  }
}

async function onDemandNodes({ world }: Fleet): Promise<number> {
  return (await world.nodes()).filter(({ capacityType }) => capacityType === "on-demand").length;
}

async function isRefilled({ world, client }: Fleet, scale: StormScale): Promise<boolean> {
  const refilled = async () =>
    (await Promise.all(scale.pools.map(({ name }) => client.get(`/v1/pools/default/${name}`, poolView)))).every(
      ({ standby: { wanted, ready }, serving, desired }) => ready >= wanted && serving >= desired,
    );
  return world.until("standby that is refilled", REFILLED_WITHIN_MS, refilled).then(
    () => true,
    () => false,
  );
}

async function obligationsLostIn({ client }: Fleet, scale: StormScale): Promise<number> {
  const pools = await Promise.all(scale.pools.map(({ name }) => client.get(`/v1/pools/default/${name}`, poolView)));
  return pools.flatMap(({ losses }) => losses).reduce((sum, { obligations }) => sum + obligations, 0);
}

function asSnapshot({ sent, inFlight, completed, rejected, cut, lost }: StormCounts) {
  return { sent, inFlight, outcomes: { completed, rejected, cut, lost } };
}
