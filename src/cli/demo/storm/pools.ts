/** The pools of the storm: light processes, two to a node, so that what is lost must really be made again somewhere else. */
import type { KubeObjectDraft } from "../../../kube/api.ts";
import type { Priority } from "../../../model/membership.ts";
import type { StormPool } from "./scale.ts";

/** Two fit on a machine of the embedded cluster, with its four cores. */
const CPU = "1900m";

/** As the fleet has its classes, so has Kubernetes: what is more important finds its place first. */
const PRIORITY_VALUES: Readonly<Record<Priority, number>> = { critical: 1_000_000, standard: 1_000, batch: 1 };

export function priorityClass(priority: Priority): KubeObjectDraft {
  return {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: classNameOf(priority) },
    value: PRIORITY_VALUES[priority],
  };
}

function classNameOf(priority: Priority): string {
  return `storm-${priority}`;
}

export function stormPool({ name, priority, desired, standby }: StormPool): KubeObjectDraft {
  const labels = { app: name, instance: "$(relevo.instance)" };
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name, namespace: "default" },
    spec: {
      driver: "service",
      size: { desired, floor: desired, max: 2 * desired },
      priority,
      standby: { count: standby },
      service: { port: 8080, protocol: "none", healthPath: "/healthz" },
      traffic: { route: name, queue: { limit: 500, wait: "5s" } },
      disruption: { mode: "Act", draining: desired, drainLead: "12s" },
      deletion: "drain",
      blueprint: {
        objects: [
          {
            apiVersion: "apps/v1",
            kind: "Deployment",
            metadata: { name: "$(relevo.instance)", labels: { app: name } },
            spec: {
              replicas: 1,
              selector: { matchLabels: labels },
              template: {
                metadata: { labels },
                spec: {
                  terminationGracePeriodSeconds: 5,
                  priorityClassName: classNameOf(priority),
                  containers: [
                    {
                      name: "worker",
                      image: "node:24",
                      command: ["node", "$(RELEVO_EXAMPLES)/storm/worker.mjs"],
                      env: [{ name: "PORT", value: "8080" }],
                      ports: [{ name: "http", containerPort: 8080 }],
                      resources: { requests: { cpu: CPU, memory: "64Mi" } },
                      readinessProbe: { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 1 },
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
