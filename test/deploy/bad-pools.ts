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

export interface Judged {
  readonly what: string;
  readonly pool: Json;
}

const withObjects = (...objects: readonly Json[]): Json => poolOf({ blueprint: { objects } });

export const GOOD_POOLS: readonly Judged[] = [
  { what: "the least that is needed", pool: poolOf({}) },
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
  { what: "an unknown driver", pool: poolOf({ driver: "trino" }) },
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
  { what: "a field that is none", pool: poolOf({ sizes: { desired: 2 } }) },
  { what: "a field of size that is none", pool: poolOf({ size: { desired: 2, min: 1 } }) },
  { what: "no spec", pool: { apiVersion: "relevo.dev/v1alpha1", kind: "Pool", metadata: { name: "orders" } } },
  { what: "a name of 41 characters", pool: poolOf({}, { name: "a".repeat(41) }) },
  { what: "a name with a dot", pool: poolOf({}, { name: "orders.eu" }) },
];
