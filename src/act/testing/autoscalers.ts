/** A workload that others made, and autoscalers of it. */
import type { KubeApi, KubeObject } from "../../kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS } from "../../kube/resources.ts";

/** The embedded cluster has none of both kinds: here they are custom ones. */
export async function withAutoscalers(kube: KubeApi): Promise<void> {
  for (const { group, version, kind, plural } of [HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS])
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${group}` },
      spec: {
        ...{ group, scope: "Namespaced", names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` } },
        versions: [
          {
            ...{ name: version, served: true, storage: true },
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        ],
      },
    });
}

/** Of three replicas. */
export function makeWeb(kube: KubeApi, more: object = {}): Promise<KubeObject> {
  const labels = { app: "web" };
  return kube.create(
    DEPLOYMENTS,
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web" },
      spec: {
        replicas: 3,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1" }] } },
        ...more,
      },
    },
    { namespace: "default" },
  );
}

export const makeHpa = (kube: KubeApi, target = "web"): Promise<KubeObject> =>
  kube.create(
    HORIZONTAL_POD_AUTOSCALERS,
    {
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "web" },
      spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: target }, maxReplicas: 9 },
    },
    { namespace: "default" },
  );
