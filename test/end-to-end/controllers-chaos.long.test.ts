/**
 * Three controllers on one PostgreSQL for ten minutes: killed, ended and stopped at random under load, while nodes drift, and then while machines are announced
 * to be taken. What they did is judged from the store's own history. Level: real processes, a real database.
 *
 * RELEVO_SEED and RELEVO_CHAOS_MINUTES make it another run; with RELEVO_KEEP_EVIDENCE the report is kept in docs/evidence.
 */
import { afterEach, expect, test } from "vitest";
import type { LoadClient } from "../../src/cli/demo/load/client.ts";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { integerBetween, type Random } from "../../src/kernel/random.ts";
import { systemClock as clock } from "../../src/kernel/system.ts";
import { DEPLOYMENTS } from "../../src/kube/resources.ts";
import { LABELS } from "../../src/model/marks.ts";
import { spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import type { Interruption } from "../../src/embedded/provisioner/provisioner.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";
import { seededRandom } from "../integration/chance.ts";
import { Controllers } from "./controllers.ts";
import { type HistoryChange, violationsOf } from "./history.ts";

const SEED = Number(process.env["RELEVO_SEED"] ?? Math.floor(clock.now() % 1_000_000));
const MINUTES = Number(process.env["RELEVO_CHAOS_MINUTES"] ?? 10);
const POOLS = ["alpha", "bravo", "charlie", "delta"];
const REPLICAS = 3;
const MIX: Mix = {
  perSecond: { order: 8, charge: 2, export: 0.3, live: 0.1, tx: 0.3 },
  exportSeconds: [0.5, 2],
  liveSeconds: [0.5, 2],
  txSeconds: [1, 3],
  stepMs: 100,
  http2Share: 0.3,
};
/** Long enough for a hand-over, a start of the replacement and what is in flight. */
const SPOT_LEAD_MS = 40_000;
const QUIET_MS = 180_000;
/** A hand-over and what a replica needs to be back. */
const CALM_MS = 6_000;

type Kind = "killed" | "ended" | "stopped";
interface Disturbance {
  readonly kind: Kind;
  readonly replica: string;
  readonly at: number;
  until: number;
}

let fleet: Controllers;
afterEach(() => fleet.close());

test(
  `controllers that die, end and stand still for ${MINUTES} minutes (seed ${SEED}): one owner at a time, each step once, nothing voluntary lost (I4, I5)`,
  async () => {
    console.log(`RELEVO_SEED=${SEED}`);
    const random = seededRandom(SEED);
    fleet = await Controllers.start({
      replicas: REPLICAS,
      pools: POOLS,
      nodes: 6,
      gateways: 2,
      spotLeadMs: SPOT_LEAD_MS,
      provisioner: { minNodes: 6, maxNodes: 10, disruptionIntervalMs: 86_400_000 },
    });
    await whole();
    const loads = POOLS.map((pool, index) => fleet.load(pool, MIX, index % 2));
    const disturbances: Disturbance[] = [];
    const moved = { drifted: 0, announced: 0 };
    const acts = [];
    for (const [act, share] of [
      ["voluntary", 0.6],
      ["deadline", 0.4],
    ] as const) {
      for (const load of loads) load.startAct(act);
      const ending = clock.monotonic() + share * MINUTES * 60_000;
      await Promise.all([disturb(random, ending, disturbances), move(random, ending, act, moved)]);
      await settled();
      acts.push({ act, ...(await endActs(loads, act)) });
    }

    const history = await fleet.history.read();
    const report = {
      seed: SEED,
      minutes: MINUTES,
      replicas: REPLICAS,
      pools: POOLS.length,
      disturbances: countsOf(disturbances.map(({ kind }) => kind)),
      moved,
      claims: claimsOf(history).length,
      changes: history.length,
      steps: new Set(history.filter(({ table }) => table === "steps").map(({ pool, is }) => `${pool} ${is?.["id"]}`)).size,
      handOverMs: handOversOf(history, disturbances),
      acts: acts.map(({ problems, ...counts }) => ({ ...counts, problems: problems.length })),
      violations: violationsOf(history),
      strays: await strays(),
    };
    console.log(JSON.stringify(report, null, 1));
    if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined) keepEvidence("controllers-chaos", circumstances(new Date(clock.now())), report);
    expect(report.violations).toEqual([]);
    expect(report.strays).toEqual([]);
    expect(acts.map(({ act, lost, doubled }) => ({ act, lost, doubled }))).toEqual([
      { act: "voluntary", lost: 0, doubled: 0 },
      { act: "deadline", lost: 0, doubled: 0 },
    ]);
    expect(acts[0]).toMatchObject({ rejected: 0, cut: 0, problems: [] });
    expect(report.handOverMs.ended.max).toBeLessThan(5_000);
    expect(report.handOverMs.killed.p50).toBeLessThan(5_000);
    expect(report.handOverMs.killed.max).toBeLessThan(7_000);
  },
  (MINUTES + 6) * 60_000,
);

/** One or two replicas at a time; never all of them. */
async function disturb(random: Random, ending: number, disturbances: Disturbance[]): Promise<void> {
  const ends = new Set<Promise<void>>();
  const busy = new Set<string>();
  while (clock.monotonic() < ending) {
    // Now and then all is calm first, so that what one hand-over takes can be told.
    if (random.next() < 0.4) {
      await Promise.all(ends);
      await clock.sleep(CALM_MS);
    } else await clock.sleep(integerBetween(random, 2_000, 10_000));
    const replica = pick(
      random,
      [...fleet.replicas.keys()].filter((name) => !busy.has(name)),
    );
    if (replica === undefined || busy.size >= REPLICAS - 1) continue;
    busy.add(replica);
    const kind = pick(random, ["killed", "killed", "ended", "stopped"] as const) ?? "killed";
    const forMs = integerBetween(random, 500, kind === "stopped" ? 15_000 : 8_000);
    const disturbance: Disturbance = { kind, replica, at: clock.now(), until: Number.POSITIVE_INFINITY };
    disturbances.push(disturbance);
    const end = perform(kind, replica, forMs).finally(() => {
      disturbance.until = clock.now();
      busy.delete(replica);
      ends.delete(end);
    });
    ends.add(end);
  }
  await Promise.all(ends);
}

async function perform(kind: Kind, name: string, forMs: number): Promise<void> {
  const replica = fleet.replicas.get(name);
  if (kind === "stopped") {
    await replica?.signal("SIGSTOP");
    await clock.sleep(forMs);
    await replica?.signal("SIGCONT");
    return;
  }
  await replica?.signal(kind === "killed" ? "SIGKILL" : "SIGTERM");
  await clock.sleep(forMs);
  await fleet.replica(name);
}

/** Nodes that go, one after the other: each pool has all its instances before the next one. */
async function move(
  random: Random,
  ending: number,
  act: "voluntary" | "deadline",
  moved: { drifted: number; announced: number },
): Promise<void> {
  while (clock.monotonic() < ending) {
    await clock.sleep(integerBetween(random, 4_000, 12_000));
    if (!(await isWhole())) continue;
    const nodes = await nodesOfInstances();
    const node = pick(random, nodes);
    if (node === undefined) continue;
    if (act === "voluntary") {
      await fleet.cluster.provisioner.drift(node);
      moved.drifted += 1;
    } else {
      if (await announce(fleet.cluster.provisioner.interrupt(node, { deadlineMs: SPOT_LEAD_MS }), moved.announced)) moved.announced += 1;
      await clock.sleep(SPOT_LEAD_MS);
    }
  }
}

/** To whichever replica takes it: a sender tries again. */
async function announce({ instanceId: machineId, region, account }: Interruption, number: number): Promise<boolean> {
  const body = spotInterruptionWarning({ id: `chaos-${SEED}-${number}`, at: clock.now(), machineId, region, account });
  for (let tries = 0; tries < 40; tries++) {
    for (const { url, isAlive } of fleet.replicas.values()) {
      if (!isAlive) continue;
      const answer = await fetch(`${url}/v1/notices/eventbridge`, { method: "POST", body, signal: AbortSignal.timeout(2_000) }).catch(
        () => undefined,
      );
      if (answer?.ok) return true;
    }
    await clock.sleep(250);
  }
  return false;
}

async function isWhole(): Promise<boolean> {
  for (const pool of POOLS) {
    const rows = await fleet.rows(pool);
    if (rows?.instances.length !== 2 || rows.instances.some(({ phase }) => phase !== "serving")) return false;
  }
  return true;
}

const whole = () => fleet.until("each pool has its two instances and no other", isWhole, QUIET_MS);

async function settled(): Promise<void> {
  await whole();
  await fleet.until(
    "no step is open",
    async () => (await Promise.all(POOLS.map((pool) => fleet.rows(pool)))).every((rows) => rows?.openSteps.length === 0),
    QUIET_MS,
  );
}

async function nodesOfInstances(): Promise<readonly string[]> {
  const rows = await Promise.all(POOLS.map((pool) => fleet.rows(pool)));
  const nodes = rows.flatMap((each) => each?.instances.flatMap(({ incarnation }) => incarnation.nodeName ?? []) ?? []);
  return [...new Set(nodes)].toSorted();
}

async function endActs(loads: readonly LoadClient[], act: string) {
  const results = (await Promise.all(loads.map((load) => load.endAct(act)))).map(({ result }) => result);
  const sum = (of: (result: (typeof results)[number]) => number) => results.reduce((total, result) => total + of(result), 0);
  return {
    sent: sum(({ sent }) => sent),
    completed: sum(({ completed }) => completed),
    rejected: sum(({ rejected }) => rejected),
    cut: sum(({ cut }) => cut),
    lost: sum(({ lost }) => lost),
    doubled: sum(({ doubled }) => doubled),
    problems: results.flatMap(({ problems }) => problems),
  };
}

function claimsOf(history: readonly HistoryChange[]): readonly HistoryChange[] {
  return history.filter(
    ({ table, was, is }) => table === "pools" && is !== null && is["owner"] !== null && is["claimed_at"] !== was?.["claimed_at"],
  );
}

/** From a disturbance to the next claim of each pool that the replica had then; only where no other replica was disturbed at that time. */
function handOversOf(history: readonly HistoryChange[], disturbances: readonly Disturbance[]) {
  const claims = claimsOf(history);
  const found: Record<Kind, number[]> = { killed: [], ended: [], stopped: [] };
  for (const { kind, replica, at } of disturbances) {
    const isAlone = disturbances.every((other) => other.at === at || other.until + CALM_MS <= at + 100 || other.at > at + CALM_MS);
    if (!isAlone) continue;
    for (const pool of POOLS.map((name) => `default/${name}`)) {
      const owner = claims.findLast((claim) => claim.pool === pool && claim.at <= at)?.is?.["owner"];
      if (owner !== replica) continue;
      const next = claims.find((claim) => claim.pool === pool && claim.at > at && (kind !== "stopped" || claim.by !== replica));
      if (next !== undefined && next.at - at < 15_000) found[kind].push(next.at - at);
    }
  }
  return { killed: figuresOf(found.killed), ended: figuresOf(found.ended), stopped: figuresOf(found.stopped) };
}

function figuresOf(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b);
  return { count: sorted.length, p50: sorted[Math.floor(sorted.length / 2)] ?? 0, max: sorted.at(-1) ?? 0 };
}

function pick<T>(random: Random, items: readonly T[]): T | undefined {
  return items[Math.floor(random.next() * items.length)];
}

function countsOf(kinds: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const kind of kinds) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** Objects of instances that the store does not have: what a step made twice would be one. */
async function strays(): Promise<readonly string[]> {
  const known = new Set(
    (await Promise.all(POOLS.map((pool) => fleet.rows(pool)))).flatMap((rows) => rows?.instances.map(({ id }) => id) ?? []),
  );
  const { items } = await fleet.kube.list(DEPLOYMENTS, { namespace: "default", labelSelector: LABELS.instance });
  return items.map(({ metadata }) => metadata.labels?.[LABELS.instance] ?? "").filter((instance) => !known.has(instance));
}
