/**
 * Where a pod shall rather go, as node affinity: pure. What the blueprint itself asks for stands; where both could not hold together, ours gives way.
 */
import { isAnywhere, type Placement } from "../model/placement.ts";

type Json = Readonly<Record<string, unknown>>;

interface Expression {
  readonly key: string;
  readonly operator: "In" | "NotIn";
  readonly values: readonly string[];
}

const ZONE = "topology.kubernetes.io/zone";
const INSTANCE_TYPE = "node.kubernetes.io/instance-type";
const HOSTNAME = "kubernetes.io/hostname";
const CAPACITY_TYPE = "karpenter.sh/capacity-type";

export function withPlacement(podSpec: Json, placement: Placement): Json {
  if (isAnywhere(placement)) return podSpec;
  const selector = child(podSpec, "nodeSelector");
  const expressions = expressionsOf(placement).filter((expression) => !contradicts(expression, selector[expression.key]));
  if (expressions.length === 0) return podSpec;
  const affinity = child(podSpec, "affinity");
  const nodeAffinity = child(affinity, "nodeAffinity");
  const required = child(nodeAffinity, "requiredDuringSchedulingIgnoredDuringExecution");
  const terms = Array.isArray(required["nodeSelectorTerms"]) ? (required["nodeSelectorTerms"] as readonly Json[]) : [];
  // Terms are alternatives: each must bear what is asked for.
  const nodeSelectorTerms = (terms.length === 0 ? [{}] : terms).map((term) => narrowed(term, expressions));
  return {
    ...podSpec,
    affinity: {
      ...affinity,
      nodeAffinity: { ...nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: { ...required, nodeSelectorTerms } },
    },
  };
}

function expressionsOf({ avoid, capacityType }: Placement): readonly Expression[] {
  return [
    ...(avoid.zones.length === 0 ? [] : [{ key: ZONE, operator: "NotIn" as const, values: avoid.zones }]),
    ...(avoid.instanceTypes.length === 0 ? [] : [{ key: INSTANCE_TYPE, operator: "NotIn" as const, values: avoid.instanceTypes }]),
    ...(avoid.nodes.length === 0 ? [] : [{ key: HOSTNAME, operator: "NotIn" as const, values: avoid.nodes }]),
    ...(capacityType === null ? [] : [{ key: CAPACITY_TYPE, operator: "In" as const, values: [capacityType] }]),
  ];
}

function narrowed(term: Json, expressions: readonly Expression[]): Json {
  const own = Array.isArray(term["matchExpressions"]) ? (term["matchExpressions"] as readonly Json[]) : [];
  const added = expressions.filter((expression) => {
    const asked = own.find((each) => each["key"] === expression.key && each["operator"] === "In");
    const values = Array.isArray(asked?.["values"]) ? asked["values"] : undefined;
    return values === undefined || values.some((value) => !contradicts(expression, value));
  });
  return { ...term, matchExpressions: [...own, ...added] };
}

function contradicts({ operator, values }: Expression, value: unknown): boolean {
  if (typeof value !== "string") return false;
  return values.includes(value) === (operator === "NotIn");
}

function child(object: Json, key: string): Json {
  const value = object[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
