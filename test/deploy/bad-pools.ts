/** Pool documents that must be refused, and some that must not be: by the schema and by an API server with our CustomResourceDefinition alike. */

type Json = Readonly<Record<string, unknown>>;

const deployment = (name = "$(relevo.instance)", more: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: { selector: { matchLabels: { app: "a" } }, template: { metadata: { labels: { app: "a" } }, spec: { containers: [] } } },
  ...more,
});
const other = (kind: string, apiVersion: string, name = "$(relevo.instance)"): Json => ({ apiVersion, kind, metadata: { name } });

function poolOf(spec: Json, metadata: Json = {}): Json {
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "orders", ...metadata },
    spec: { driver: "service", size: { desired: 2 }, blueprint: { objects: [deployment()] }, ...spec },
  };
}

const SIGNAL = { kind: "queue", connection: "main", queue: "captures" };

/** A pool of workers whose size follows a signal. */
function workersOf(scale: Json = {}, spec: Json = {}): Json {
  return poolOf({ driver: "worker", worker: { flow: "queue/captures" }, scale: { signal: SIGNAL, target: 2, ...scale }, ...spec });
}
const withSignal = (signal: Json): Json => workersOf({ signal });

export interface Judged {
  readonly what: string;
  readonly pool: Json;
}

const withObjects = (...objects: readonly Json[]): Json => poolOf({ blueprint: { objects } });

export const GOOD_POOLS: readonly Judged[] = [
  { what: "the least that is needed", pool: poolOf({}) },
  { what: "a Trino cluster without a worker", pool: poolOf({ driver: "trino", service: { port: 8443 } }) },
  {
    what: "a Trino cluster with workers",
    pool: poolOf({
      driver: "trino",
      trino: { user: "relevo", retryPolicy: "TASK", clientTimeout: "5m", routing: { group: "adhoc", source: "dbt.*" } },
      blueprint: { objects: [deployment(), deployment("$(relevo.instance)-worker")] },
    }),
  },
  {
    what: "everything said",
    pool: poolOf({
      sites: ["local", "north"],
      size: { desired: 4, floor: 3, max: 8 },
      priority: "critical",
      standby: { count: 1 },
      serviceAccountName: "relevo-instances",
      service: { port: 80, protocol: "relevo/v1", healthPath: "/ok?a=b" },
      traffic: {
        route: "orders",
        hosts: ["a.example"],
        retry: "not-taken",
        tries: 2,
        perTryTimeout: "1.5s",
        queue: { limit: 0, wait: "0s" },
        latencyLimit: "80ms",
      },
      disruption: {
        mode: "Act",
        surge: 2,
        draining: 1,
        drainFor: "1h30m",
        candidates: { retries: 0, per: "1d", readyWithin: "90s" },
        provisioners: ["karpenter", "none"],
      },
      state: { lease: { ttl: "1s" } },
      deletion: "drain",
    }),
  },
  { what: "floor and desired 0", pool: poolOf({ size: { desired: 0, floor: 0 } }) },
  { what: "the longest duration, in two parts", pool: poolOf({ disruption: { drainFor: "364d24h" } }) },
  { what: "the same name for two kinds", pool: withObjects(deployment(), other("Service", "v1")) },
  { what: "a name around the instance", pool: withObjects(deployment("$(relevo.site)-$(relevo.instance)-main")) },
  { what: "workers that follow nothing", pool: poolOf({ driver: "worker" }) },
  { what: "workers that follow a queue", pool: workersOf() },
  {
    what: "all of scale said",
    pool: workersOf({
      pollEvery: "1s",
      maxAge: "30s",
      tolerance: 0.2,
      up: { window: "10s", step: { instances: 1, percent: 50, per: "1m" } },
      down: { window: "5m", step: { instances: 1, percent: 10, per: "1m" } },
      cooldown: "0s",
      fallback: { after: "10m", instances: 4 },
      stuck: { share: 0.5, holdFor: "1h" },
      pausedAt: 4,
    }),
  },
  { what: "rows", pool: withSignal({ kind: "postgresql", connection: "main", query: "select count(*) as backlog from jobs" }) },
  { what: "a list", pool: withSignal({ kind: "redis-list", connection: "main", list: "jobs" }) },
  { what: "a stream", pool: withSignal({ kind: "redis-stream", connection: "main", stream: "jobs", group: "workers" }) },
  { what: "a topic", pool: withSignal({ kind: "kafka", connection: "main", topic: "jobs", group: "workers" }) },
  { what: "SQS", pool: withSignal({ kind: "sqs", connection: "main", queue: "jobs" }) },
  { what: "Pub/Sub", pool: withSignal({ kind: "pubsub", connection: "main", project: "p", subscription: "s" }) },
  { what: "a metric", pool: withSignal({ kind: "prometheus", connection: "main", query: "sum(jobs)", flowLabel: "queue" }) },
  { what: "an external metric", pool: withSignal({ kind: "external-metric", metric: "jobs", selector: { queue: "captures" } }) },
  { what: "a workload that others made", pool: workersOf({}, { blueprint: undefined, target: { kind: "Deployment", name: "capture" } }) },
  { what: "no protocol and no lease", pool: poolOf({ service: { protocol: "none" }, state: {} }) },
];

export const BAD_POOLS: readonly Judged[] = [
  { what: "floor above desired", pool: poolOf({ size: { desired: 2, floor: 3 } }) },
  { what: "max below desired", pool: poolOf({ size: { desired: 2, max: 1 } }) },
  { what: "desired missing", pool: poolOf({ size: { floor: 1 } }) },
  { what: "desired negative", pool: poolOf({ size: { desired: -1 } }) },
  { what: "desired too large", pool: poolOf({ size: { desired: 10_001 } }) },
  { what: "desired a text", pool: poolOf({ size: { desired: "2" } }) },
  { what: "desired half", pool: poolOf({ size: { desired: 1.5 } }) },
  { what: "no driver", pool: poolOf({ driver: undefined }) },
  { what: "an unknown driver", pool: poolOf({ driver: "presto" }) },
  { what: "an unknown priority", pool: poolOf({ priority: "urgent" }) },
  { what: "no sites", pool: poolOf({ sites: [] }) },
  { what: "a site with capitals", pool: poolOf({ sites: ["North"] }) },
  { what: "a ServiceAccount that is no name", pool: poolOf({ serviceAccountName: "system:admin" }) },
  { what: "a ServiceAccount without a name", pool: poolOf({ serviceAccountName: "" }) },
  { what: "no blueprint", pool: poolOf({ blueprint: undefined }) },
  { what: "an empty blueprint", pool: withObjects() },
  {
    what: "21 objects",
    pool: withObjects(deployment(), ...Array.from({ length: 20 }, (_, at) => other("ConfigMap", "v1", `$(relevo.instance)-${at}`))),
  },
  { what: "a ClusterRole in the blueprint", pool: withObjects(deployment(), other("ClusterRole", "rbac.authorization.k8s.io/v1")) },
  { what: "a Secret in the blueprint", pool: withObjects(deployment(), other("Secret", "v1")) },
  { what: "a Deployment of another group", pool: withObjects(deployment("$(relevo.instance)", { apiVersion: "example.com/v1" })) },
  { what: "a Service of a wrong version", pool: withObjects(deployment(), other("Service", "v2")) },
  { what: "no lead", pool: withObjects(other("Service", "v1")) },
  { what: "a name without the instance", pool: withObjects(deployment("orders")) },
  { what: "a name with capitals", pool: withObjects(deployment("Orders-$(relevo.instance)")) },
  { what: "a name that ends in a dash", pool: withObjects(deployment("$(relevo.instance)-")) },
  { what: "a name of 254 characters", pool: withObjects(deployment(`$(relevo.instance)${"a".repeat(236)}`)) },
  { what: "two objects of one name", pool: withObjects(deployment(), deployment()) },
  { what: "an object without metadata", pool: withObjects({ apiVersion: "apps/v1", kind: "Deployment" }) },
  { what: "port 0", pool: poolOf({ service: { port: 0 } }) },
  { what: "an unknown protocol", pool: poolOf({ service: { protocol: "relevo/v2" } }) },
  { what: "a health path without a slash", pool: poolOf({ service: { healthPath: "health" } }) },
  { what: "a health path with a space", pool: poolOf({ service: { healthPath: "/a b" } }) },
  { what: "a lease without the protocol", pool: poolOf({ service: { protocol: "none" }, state: { lease: {} } }) },
  { what: "a lease of less than a second", pool: poolOf({ state: { lease: { ttl: "999ms" } } }) },
  { what: "a lease of minutes written as ms", pool: poolOf({ state: { lease: { ttl: "5ms" } } }) },
  { what: "a timeout of no time", pool: poolOf({ traffic: { perTryTimeout: "0s" } }) },
  { what: "a duration without a unit", pool: poolOf({ traffic: { slowStart: "10" } }) },
  { what: "a duration as a number", pool: poolOf({ traffic: { slowStart: 10 } }) },
  { what: "a duration of a year and a second", pool: poolOf({ disruption: { drainFor: "365d1s" } }) },
  { what: "a duration of 41 characters", pool: poolOf({ disruption: { drainFor: `${"0".repeat(39)}1s` } }) },
  { what: "an unknown mode", pool: poolOf({ disruption: { mode: "on" } }) },
  { what: "surge 0", pool: poolOf({ disruption: { surge: 0 } }) },
  { what: "no provisioner", pool: poolOf({ disruption: { provisioners: [] } }) },
  { what: "an unknown deletion policy", pool: poolOf({ deletion: "now" }) },
  { what: "a signal of an unknown kind", pool: withSignal({ ...SIGNAL, kind: "rabbitmq" }) },
  { what: "a signal without its connection", pool: withSignal({ kind: "queue", queue: "captures" }) },
  { what: "a signal without what it looks at", pool: withSignal({ kind: "kafka", connection: "main", topic: "jobs" }) },
  { what: "a signal with a field of another kind", pool: withSignal({ ...SIGNAL, topic: "jobs" }) },
  { what: "an external metric with a connection", pool: withSignal({ kind: "external-metric", metric: "jobs", connection: "main" }) },
  { what: "an address instead of a connection", pool: withSignal({ ...SIGNAL, connection: "http://10.0.0.1" }) },
  { what: "a selector that is no text", pool: withSignal({ kind: "external-metric", metric: "jobs", selector: { queue: 1 } }) },
  { what: "a target of 0", pool: workersOf({ target: 0 }) },
  { what: "no target", pool: workersOf({ target: undefined }) },
  { what: "a share above 1", pool: workersOf({ stuck: { share: 1.5 } }) },
  { what: "a fallback above the maximum", pool: workersOf({ fallback: { instances: 5 } }) },
  { what: "a pause above the maximum", pool: workersOf({ pausedAt: 11 }, { size: { desired: 2, max: 10 } }) },
  { what: "a cluster that is spoken to in our protocol", pool: poolOf({ driver: "trino", service: { protocol: "relevo/v1" } }) },
  { what: "a cluster that is spoken to in none", pool: poolOf({ driver: "trino", service: { protocol: "none" } }) },
  { what: "a cluster with a health path", pool: poolOf({ driver: "trino", service: { healthPath: "/v1/info" } }) },
  { what: "a cluster with a writer lease", pool: poolOf({ driver: "trino", state: { lease: {} } }) },
  { what: "a cluster that scales", pool: workersOf({}, { driver: "trino" }) },
  { what: "a service that scales", pool: workersOf({}, { driver: "service" }) },
  { what: "scale without a flow", pool: workersOf({}, { worker: {} }) },
  { what: "scale without workers' own words", pool: workersOf({}, { worker: undefined }) },
  { what: "a target beside a blueprint", pool: workersOf({}, { target: { kind: "Deployment", name: "capture" } }) },
  {
    what: "a target that does not scale",
    pool: poolOf({ driver: "worker", blueprint: undefined, target: { kind: "Deployment", name: "capture" } }),
  },
  { what: "a target without a /scale", pool: workersOf({}, { blueprint: undefined, target: { kind: "DaemonSet", name: "capture" } }) },
  { what: "a field that is none", pool: poolOf({ sizes: { desired: 2 } }) },
  { what: "a field of size that is none", pool: poolOf({ size: { desired: 2, min: 1 } }) },
  { what: "no spec", pool: { apiVersion: "relevo.dev/v1alpha1", kind: "Pool", metadata: { name: "orders" } } },
  { what: "a name of 41 characters", pool: poolOf({}, { name: "a".repeat(41) }) },
  { what: "a name with a dot", pool: poolOf({}, { name: "orders.eu" }) },
];
