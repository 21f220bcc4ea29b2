/** The pools that a run is about, drawn from its seed or given: sizes, policies, times. */
import { integerBetween, type Random } from "../kernel/random.ts";
import type { KubeObjectDraft } from "../kube/api.ts";
import type { Priority } from "../model/membership.ts";
import { type DisruptionMode, poolKey, poolSchema, routeOf } from "../model/pool.ts";
import { FLOW } from "./jobs.ts";
import { chance } from "./seeded.ts";

export interface Scenario {
  readonly nodes: number;
  readonly zones: readonly string[];
  readonly gateways: number;
  /** Of the controller, which share the pools; 1 when absent. */
  readonly replicas?: number;
  /** From a container's start to its first passed check. */
  readonly bootMs: readonly [number, number];
  /** From a machine's request to its node; 2 s when absent. */
  readonly nodeStartMs?: number;
  /** Of the spot warning, and of the machine's end. */
  readonly leadMs: number;
  /** At least one. */
  readonly pools: readonly ScenarioPool[];
}

/** A pool of the run, as it is applied at the start. */
export interface ScenarioPool {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly route: string;
  readonly desired: number;
  /** What the mode is again after it was turned off; `Act` when absent. */
  readonly mode?: DisruptionMode;
  readonly document: KubeObjectDraft;
  /** Its size follows the modelled queue. */
  readonly scales: boolean;
}

/** Throws what zod throws when the document is none of a pool. */
export function scenarioPool(document: KubeObjectDraft): ScenarioPool {
  const pool = poolSchema.parse(document);
  const { namespace, name } = pool.metadata;
  const { size, scale } = pool.spec;
  const scales = scale !== undefined;
  return { key: poolKey(namespace, name), namespace, name, route: routeOf(pool), desired: size.desired, document, scales };
}

/** Of the standard mix: three to twelve instances in one to three pools of different priority, some with a writer lease, some with standby. */
export function drawScenario(random: Random): Scenario {
  const names = POOLS.slice(0, integerBetween(random, 1, POOLS.length));
  const most = Math.floor(MOST_INSTANCES / names.length);
  const cpu = chance(random, 0.5) ? "100m" : "1200m";
  return {
    nodes: integerBetween(random, 3, 6),
    zones: ["zone-a", "zone-b"],
    gateways: integerBetween(random, 1, 2),
    bootMs: chance(random, 0.5) ? [100, 800] : [500, 5_000],
    leadMs: integerBetween(random, 15_000, 40_000),
    pools: names.map(({ name, priority }) =>
      scenarioPool(
        poolDocument({
          name,
          priority,
          cpu,
          desired: integerBetween(random, names.length === 1 ? 3 : 1, Math.min(5, most)),
          surge: integerBetween(random, 1, 2),
          draining: integerBetween(random, 1, 2),
          standby: chance(random, 0.25) ? 1 : 0,
          leaseTtlS: chance(random, 0.4) ? integerBetween(random, 3, 10) : null,
          startsOff: chance(random, 0.1),
        }),
      ),
    ),
  };
}

const POOLS = [
  { name: "orders", priority: "critical" },
  { name: "quotes", priority: "standard" },
  { name: "reports", priority: "batch" },
] as const;
const MOST_INSTANCES = 12;

/** The drawn world, with one more pool whose workers take jobs and whose size follows them. */
export function withWorkers(scenario: Scenario): Scenario {
  const document = poolDocument({ name: "captures", desired: 1, surge: 1, draining: 2, startsOff: false, priority: "batch" });
  const spec = document["spec"] as Readonly<Record<string, unknown>>;
  const worker = { flow: FLOW, stuckAfter: "4s" };
  const scale = {
    signal: { kind: "queue", connection: "jobs", queue: "captures" },
    target: 3,
    pollEvery: "1s",
    maxAge: "10s",
    down: { window: "10s", step: { percent: 100 } },
    cooldown: "5s",
  };
  const workers = scenarioPool({ ...document, spec: { ...spec, driver: "worker", size: { desired: 1, floor: 1, max: 5 }, worker, scale } });
  return { ...scenario, nodes: scenario.nodes + 2, pools: [...scenario.pools, workers] };
}

export interface PoolOptions {
  readonly name: string;
  readonly desired: number;
  readonly surge: number;
  readonly draining: number;
  readonly startsOff: boolean;
  readonly priority?: Priority;
  /** Of one instance, as Kubernetes writes it. */
  readonly cpu?: string;
  readonly standby?: number;
  readonly leaseTtlS?: number | null;
}

export function poolDocument(options: PoolOptions): KubeObjectDraft {
  const { name, desired, surge, draining, startsOff, priority = "critical", cpu = "100m", standby = 0, leaseTtlS = null } = options;
  const labels = { app: name };
  const selector = { ...labels, instance: "$(relevo.instance)" };
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name, namespace: "default" },
    spec: {
      driver: "service",
      size: { desired, floor: 1, max: desired + 3 },
      priority,
      ...(standby === 0 ? {} : { standby: { count: standby } }),
      ...(leaseTtlS === null ? {} : { state: { lease: { ttl: `${leaseTtlS}s` } } }),
      traffic: { route: name, healthEvery: "3s", slowStart: "2s", queue: { limit: 50, wait: "2s" } },
      disruption: {
        mode: startsOff ? "Off" : "Act",
        surge,
        draining,
        drainFor: "60s",
        drainLead: "5s",
        candidates: { retries: 3, per: "60s", readyWithin: "15s" },
        unreachableAfter: "5s",
      },
      blueprint: {
        objects: [
          {
            apiVersion: "apps/v1",
            kind: "Deployment",
            metadata: { name: "$(relevo.instance)", labels },
            spec: {
              replicas: 1,
              selector: { matchLabels: selector },
              template: {
                metadata: { labels: selector },
                spec: {
                  terminationGracePeriodSeconds: 5,
                  topologySpreadConstraints: [
                    {
                      maxSkew: 1,
                      topologyKey: "kubernetes.io/hostname",
                      whenUnsatisfiable: "ScheduleAnyway",
                      labelSelector: { matchLabels: labels },
                    },
                  ],
                  containers: [
                    {
                      name: "main",
                      image: `${name}:1`,
                      command: ["run"],
                      ports: [{ containerPort: 8080 }],
                      resources: { requests: { cpu, memory: "64Mi" } },
                      readinessProbe: { httpGet: { path: "/relevo/v1/health", port: 8080 }, periodSeconds: 3 },
                    },
                  ],
                },
              },
            },
          },
        ],
      },
    },
  };
}
