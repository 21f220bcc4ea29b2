import { expect, test } from "vitest";
import { ANYWHERE, type Placement } from "../model/placement.ts";
import { renderBlueprint } from "./render-blueprint.ts";
import { withPlacement } from "./render-placement.ts";

const AWAY: Placement = { avoid: { zones: ["zone-a"], instanceTypes: ["local.large"], nodes: ["node-a1"] }, capacityType: "on-demand" };
const OURS = [
  { key: "topology.kubernetes.io/zone", operator: "NotIn", values: ["zone-a"] },
  { key: "node.kubernetes.io/instance-type", operator: "NotIn", values: ["local.large"] },
  { key: "kubernetes.io/hostname", operator: "NotIn", values: ["node-a1"] },
  { key: "karpenter.sh/capacity-type", operator: "In", values: ["on-demand"] },
];
const required = (...terms: readonly unknown[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
});

test("a pod that may go anywhere is left as it is", () => {
  const spec = { containers: [] };
  expect(withPlacement(spec, ANYWHERE)).toBe(spec);
});

test("zones and types are avoided and on demand is asked for, in one term (S2)", () => {
  expect(withPlacement({ containers: [] }, AWAY)).toEqual({ containers: [], affinity: required({ matchExpressions: OURS }) });
});

test("each alternative of the blueprint's own affinity bears it, and the rest of the affinity stays", () => {
  const own = { key: "disk", operator: "In", values: ["ssd"] };
  const affinity = { podAntiAffinity: { x: 1 }, ...required({ matchExpressions: [own] }, { matchFields: [{ key: "metadata.name" }] }) };
  expect(withPlacement({ affinity }, AWAY)).toEqual({
    affinity: {
      podAntiAffinity: { x: 1 },
      ...required({ matchExpressions: [own, ...OURS] }, { matchFields: [{ key: "metadata.name" }], matchExpressions: OURS }),
    },
  });
});

test("where the blueprint asks for what is avoided, the blueprint stands", () => {
  const selected = { nodeSelector: { "topology.kubernetes.io/zone": "zone-a", "karpenter.sh/capacity-type": "spot" } };
  expect(withPlacement(selected, AWAY)).toEqual({ ...selected, affinity: required({ matchExpressions: [OURS[1], OURS[2]] }) });
  const inZone = { key: "topology.kubernetes.io/zone", operator: "In", values: ["zone-a"] };
  const zones = { avoid: { zones: ["zone-a"], instanceTypes: [], nodes: [] }, capacityType: null };
  expect(withPlacement({ affinity: required({ matchExpressions: [inZone] }) }, zones)).toEqual({
    affinity: required({ matchExpressions: [inZone] }),
  });
});

test("the pods of an instance say from where they were kept away", () => {
  const blueprint = { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] };
  const names = { instance: "orders-1", pool: "orders", site: "local", namespace: "default" };
  const template = (placement: Placement) =>
    (renderBlueprint(blueprint, names, placement)[0] as { spec: { template: { metadata: { annotations?: unknown }; spec: unknown } } }).spec
      .template;
  expect(template(AWAY).metadata.annotations).toEqual({ "relevo.dev/placement": JSON.stringify(AWAY) });
  expect(template(AWAY).spec).toMatchObject({ affinity: required({ matchExpressions: OURS }) });
  expect(template(ANYWHERE).metadata.annotations).toBeUndefined();
});
