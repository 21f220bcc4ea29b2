/** Who may talk to whom, and who comes first. */
import { LABELS, priorityClassOf } from "../../src/model/marks.ts";
import { PRIORITIES, type Priority } from "../../src/model/membership.ts";
import { type Component, labels, openPorts, PORTS, selector, SYSTEM_PRIORITY } from "./names.ts";
import type { Settings } from "./settings.ts";
import type { Json } from "./structural.ts";

const VALUES: Readonly<Record<Priority, number>> = { critical: 100_000, standard: 10_000, batch: 1_000 };

/**
 * Pods of a pool wait in the scheduler's queue by its priority and push nobody off a node: a pod that is preempted is lost without a drain. Relevo's own
 * parts do: without them nothing is moved at all.
 */
export function priorityClasses(): readonly Json[] {
  const make = (name: string, value: number, preemptionPolicy: string, description: string): Json => ({
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name, labels: labels() },
    value,
    preemptionPolicy,
    description,
  });
  return [
    ...PRIORITIES.map((priority) =>
      make(priorityClassOf(priority), VALUES[priority], "Never", `Instances of Pools with priority ${priority}.`),
    ),
    make(SYSTEM_PRIORITY, 900_000_000, "PreemptLowerPriority", "The controller and the gateways of Relevo."),
  ];
}

const tcp = (...ports: readonly number[]): readonly Json[] => ports.map((port) => ({ protocol: "TCP", port }));
const ofRelevo = (...components: readonly Component[]): readonly Json[] =>
  components.map((component) => ({ podSelector: { matchLabels: selector(component) } }));
/** In any namespace: what Relevo made, by its label. */
const INSTANCES = { namespaceSelector: {}, podSelector: { matchExpressions: [{ key: LABELS.instance, operator: "Exists" }] } };
/** Where EKS gives pods their cloud identity; that of the node is not within reach. */
const CREDENTIALS = { to: [{ ipBlock: { cidr: "169.254.170.23/32" } }, { ipBlock: { cidr: "fd00:ec2::23/128" } }], ports: tcp(80) };
const DNS = { ports: [...tcp(53), { protocol: "UDP", port: 53 }] };

/** API server (as its Service, and as what is behind it), clouds, PostgreSQL. In a chart the user has the last word. */
export const EGRESS_PORTS = [443, 6443, 5432] as const;

/** Where demand is read, beyond those: Redis, Relevo's queue, Prometheus, Kafka without and with TLS. */
export const DEMAND_PORTS = [6379, 7091, 9090, 9092, 9093] as const;
/** As KEDA's manifests and its chart both label it, in whichever namespace it is. */
const KEDA = { namespaceSelector: {}, podSelector: { matchLabels: { app: "keda-operator" } } };

/** Added to what the controller may do, where there are connections. */
export function connectionsPolicy(settings: Settings): Json {
  return addition("relevo-connections", settings, {
    policyTypes: ["Egress"],
    egress: [{ ports: settings.isChart ? openPorts("connections") : tcp(...DEMAND_PORTS) }],
  });
}

export function kedaPolicy(settings: Settings): Json {
  return addition("relevo-keda", settings, { policyTypes: ["Ingress"], ingress: [{ from: [KEDA], ports: tcp(PORTS.keda) }] });
}

function addition(name: string, { namespace }: Settings, rest: Json): Json {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace, labels: labels("controller") },
    spec: { podSelector: { matchLabels: selector("controller") }, ...rest },
  };
}

/** The agent is in its node's network, which these do not bound. Where the API server, the clouds' queues and PostgreSQL are, nobody can say here: by port. */
export function networkPolicies(settings: Settings): readonly Json[] {
  const policy = (component: Component, ingress: readonly Json[], egress: readonly Json[]): Json => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: `relevo-${component}`, namespace: settings.namespace, labels: labels(component) },
    spec: { podSelector: { matchLabels: selector(component) }, policyTypes: ["Ingress", "Egress"], ingress, egress },
  });
  const elsewhere = { ports: settings.isChart ? openPorts("networkPolicies") : tcp(...EGRESS_PORTS) };
  return [
    // Its API asks for a token; the agents come from their nodes' addresses, which no selector names.
    policy(
      "controller",
      [{ ports: tcp(PORTS.api) }],
      [DNS, { to: [INSTANCES] }, { to: ofRelevo("controller"), ports: tcp(PORTS.api) }, elsewhere, CREDENTIALS],
    ),
    policy(
      "gateway",
      [{ ports: tcp(PORTS.traffic) }, { from: [{ namespaceSelector: {} }], ports: tcp(PORTS.admin) }],
      [DNS, { to: [INSTANCES] }, { to: ofRelevo("controller"), ports: tcp(PORTS.api) }],
    ),
  ];
}
