/**
 * A whole controller with a thousand pools of workers over all kinds of signals, in real time: how long a pass takes, how much memory the process has, and how long
 * it is from more work to another size. The cluster, the processes and the sources are modelled in this process (its memory counts), sources with 1 to 30 ms each;
 * the built-in queue tells of changes, all others are polled every 5 s.
 */
import { composeController } from "../../src/cli/processes/controller.ts";
import type { DemandAdapter } from "../../src/demand/port.ts";
import type { Connection } from "../../src/demand/connections.ts";
import type { DemandAdapters } from "../../src/demand/registry.ts";
import { createSimulatedCluster } from "../../src/embedded/cluster.ts";
import { DEFAULT_MODEL, SimulatedRuntime } from "../../src/embedded/nodes/simulated-runtime.ts";
import { systemClock as clock, systemIds as ids, systemRandom as random } from "../../src/kernel/system.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { CONNECTION_OF, type SignalKind } from "../../src/model/demand.ts";
import { createLogger } from "../../src/server/log.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import type { Change, Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";
import { ModelledInstances } from "../../test/integration/modelled-instances.ts";

const COUNT = 1_000;
const NODES = 30;
const MEASURED_MS = 60_000;
const CHANGE_EVERY_MS = 150;
const POLL_MS = 5_000;
const PUSHED = "queue";
/** Targets. */
const PASS_P99_MS = 200;
const RSS_MB = 400;
const REACTION_PUSHED_MS = 1_000;
const REACTION_POLLED_MS = POLL_MS + 500;

const SIGNALS: Readonly<Record<SignalKind, (name: string) => Readonly<Record<string, unknown>>>> = {
  queue: (name) => ({ queue: name }),
  postgresql: (name) => ({ query: `select count(*) as backlog, '${name}' as flow from jobs` }),
  "redis-list": (name) => ({ list: name }),
  "redis-stream": (name) => ({ stream: name, group: "workers" }),
  kafka: (name) => ({ topic: name, group: "workers" }),
  sqs: (name) => ({ queue: name }),
  pubsub: (name) => ({ project: "p", subscription: name }),
  prometheus: (name) => ({ query: `sum(jobs{queue="${name}"})`, flowLabel: "queue" }),
  trino: () => ({}),
  "external-metric": (name) => ({ metric: name }),
};
const KINDS = Object.keys(SIGNALS) as readonly SignalKind[];

interface Source {
  readonly pool: string;
  readonly kind: SignalKind;
  backlog: number;
  changed: () => void;
  /** When more work came, until another size was decided. */
  since: number | null;
}

export async function measurePools() {
  const sources = new Map<string, Source>();
  const passes: number[] = [];
  const reactions = { pushed: [] as number[], polled: [] as number[] };
  const instances = new ModelledInstances();
  const runtime = new SimulatedRuntime({
    ...{ clock, random, bootMs: 10 },
    model: () => DEFAULT_MODEL,
    started: (container) => {
      instances.started(container);
      const process = instances.processes.get(container.podIP);
      if (process !== undefined)
        process.slots = { flow: null, total: 4, busy: [], outcomes: { done: 0, nothing: 0, reaped: 0, failed: 0 } };
    },
    ended: (container) => instances.ended(container),
  });
  const provisioner = { maxNodes: NODES, disruptionIntervalMs: 86_400_000, consolidateAfterMs: 86_400_000 };
  const cluster = await createSimulatedCluster({ clock, random, ids, runtime, nodes: NODES, provisioner });
  const store = await openStore(":memory:");
  const composed = composeController({
    ...{ kube: cluster.api, driver: instances, clock, random, ids, metrics: createMetrics() },
    store: timed(store, (pool) => {
      const source = sources.get(pool);
      if (source === undefined || source.since === null) return;
      reactions[source.kind === PUSHED ? "pushed" : "polled"].push(clock.monotonic() - source.since);
      source.since = null;
    }),
    log: createLogger({ level: "error", name: "bench", clock }),
    connections: { find: (name) => ({ name, kind: name }) as unknown as Connection },
    demandAdapters: adaptersFor(sources),
    onPass: ({ snapshot }) => ended(snapshot.pool, passes),
  });
  await composed.controller.start();
  for (let at = 0; at < COUNT; at += 1) {
    const name = `p${at}`;
    const kind = KINDS[at % KINDS.length] ?? PUSHED;
    sources.set(`default/${name}`, { pool: `default/${name}`, kind, backlog: 0, changed: () => undefined, since: null });
    await cluster.api.create(POOLS, documentOf(name, kind), { namespace: "default" });
  }
  const serving = async (): Promise<number> => {
    const rows = await Promise.all([...sources.keys()].map((pool) => store.readPool(pool)));
    return rows.filter((row) => row?.instances.some(({ phase }) => phase === "serving")).length;
  };
  for (let waited = 0; (await serving()) < COUNT && waited < 600; waited += 1) await clock.sleep(1_000);
  const startedAt = { serving: await serving() };
  await clock.sleep(15_000);
  passes.length = 0;
  const cpu = process.cpuUsage();
  let most = 0;
  const all = [...sources.values()];
  for (const end = clock.monotonic() + MEASURED_MS; clock.monotonic() < end; await clock.sleep(CHANGE_EVERY_MS)) {
    const source = all[Math.floor(random.next() * all.length)];
    if (source !== undefined && source.backlog === 0) {
      source.backlog = 30;
      source.since = clock.monotonic();
      source.changed();
    }
    most = Math.max(most, process.memoryUsage.rss());
  }
  await clock.sleep(REACTION_POLLED_MS);
  const used = process.cpuUsage(cpu);
  const unanswered = all.filter(({ since }) => since !== null).length;
  const closed = composed.close();
  await cluster.close();
  await closed;
  await store.close();
  const figures = {
    pools: COUNT,
    kinds: KINDS.length,
    ...startedAt,
    passes: passes.length,
    passMs: { p50: quantile(passes, 0.5), p99: quantile(passes, 0.99), worst: quantile(passes, 1) },
    rssMb: Math.round(most / 1e6),
    cpuShare: Math.round(((used.user + used.system) / 1e3 / (MEASURED_MS + REACTION_POLLED_MS)) * 100) / 100,
    pushedMs: { count: reactions.pushed.length, p99: quantile(reactions.pushed, 0.99), worst: quantile(reactions.pushed, 1) },
    polledMs: { count: reactions.polled.length, p99: quantile(reactions.polled, 0.99), worst: quantile(reactions.polled, 1) },
    unanswered,
    target: { passP99Ms: PASS_P99_MS, rssMb: RSS_MB, pushedP99Ms: REACTION_PUSHED_MS, polledP99Ms: REACTION_POLLED_MS },
  };
  const holds =
    figures.serving === COUNT &&
    figures.passMs.p99 <= PASS_P99_MS &&
    figures.rssMb <= RSS_MB &&
    figures.pushedMs.p99 <= REACTION_PUSHED_MS &&
    figures.polledMs.p99 <= REACTION_POLLED_MS &&
    unanswered === 0;
  return { ...figures, holds };
}

function documentOf(name: string, kind: SignalKind) {
  const labels = { app: "$(relevo.instance)" };
  const family = CONNECTION_OF[kind];
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name, namespace: "default" },
    spec: {
      driver: "worker",
      size: { desired: 1, floor: 1, max: 3 },
      worker: { flow: name },
      scale: { signal: { kind, ...(family === null ? {} : { connection: family }), ...SIGNALS[kind](name) }, target: 10 },
      disruption: { mode: "Off" },
      blueprint: {
        objects: [
          {
            apiVersion: "apps/v1",
            kind: "Deployment",
            metadata: { name: "$(relevo.instance)" },
            spec: {
              replicas: 1,
              selector: { matchLabels: labels },
              template: {
                metadata: { labels },
                spec: { containers: [{ name: "main", image: "i", command: ["run"], ports: [{ containerPort: 8080 }] }] },
              },
            },
          },
        ],
      },
    },
  };
}

/** The names of things are the names of pools, in whichever field a kind has them. */
function adaptersFor(sources: ReadonlyMap<string, Source>): DemandAdapters {
  const adapter = (kind: SignalKind): DemandAdapter => ({
    kind,
    needs: { infrastructure: "nothing", permissions: [] },
    flowOf: () => null,
    open: (spec) => {
      const name = /\bp\d+\b/.exec(JSON.stringify(spec))?.[0] ?? "";
      const source = sources.get(`default/${name}`);
      return {
        read: async () => {
          await clock.sleep(1 + random.next() * 29);
          const backlog = source?.backlog ?? 0;
          return { backlog, inFlight: 0, oldestAgeMs: null, flow: name, valueAt: null, sourceNow: null };
        },
        ...(kind === PUSHED
          ? {
              onChange: (listener: () => void) => {
                if (source !== undefined) source.changed = listener;
                return () => undefined;
              },
            }
          : {}),
        close: () => Promise.resolve(),
      };
    },
  });
  return Object.fromEntries(KINDS.map((kind) => [kind, adapter(kind)])) as unknown as DemandAdapters;
}

/** From reading the rows to the end of the pass: what other passes do in between counts too. */
const begun = new Map<string, number>();

function timed(store: Store, onSize: (pool: string) => void): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name] as (...input: unknown[]) => Promise<unknown>;
      return async (...input: unknown[]) => {
        if (name === "close") return undefined;
        if (name === "readPool") begun.set(String(input[0]), clock.monotonic());
        const result = await method.apply(target, input);
        if (name !== "commit") return result;
        const [{ pool }, changes] = input as [{ readonly pool: string }, readonly Change[]];
        if (changes.some(({ kind }) => kind === "set_desired")) onSize(pool);
        return result;
      };
    },
  });
}

function ended(pool: string, passes: number[]): void {
  const at = begun.get(pool);
  if (at !== undefined) passes.push(clock.monotonic() - at);
  begun.delete(pool);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10;
}
