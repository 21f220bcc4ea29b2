/** The pool that a seed is about, drawn from it: sizes, policies, times. */
import { integerBetween, type Random } from "../kernel/random.ts";
import type { KubeObjectDraft } from "../kube/api.ts";
import { chance } from "./seeded.ts";

export interface Scenario {
  readonly nodes: number;
  readonly zones: readonly string[];
  readonly desired: number;
  readonly gateways: number;
  /** From a container's start to its first passed check. */
  readonly bootMs: readonly [number, number];
  /** Of the spot warning, and of the machine's end. */
  readonly leadMs: number;
  readonly surge: number;
  readonly draining: number;
  readonly startsOff: boolean;
}

export function drawScenario(random: Random): Scenario {
  const desired = integerBetween(random, 1, 4);
  return {
    nodes: integerBetween(random, 3, 6),
    zones: ["zone-a", "zone-b"],
    desired,
    gateways: integerBetween(random, 1, 2),
    bootMs: chance(random, 0.5) ? [100, 800] : [500, 5_000],
    leadMs: integerBetween(random, 15_000, 40_000),
    surge: integerBetween(random, 1, 2),
    draining: integerBetween(random, 1, 2),
    startsOff: chance(random, 0.1),
  };
}

export const NAMESPACE = "default";
export const POOL_NAME = "orders";
export const POOL_KEY = `${NAMESPACE}/${POOL_NAME}`;

export function poolDocument(scenario: Scenario): KubeObjectDraft {
  const { desired, surge, draining, startsOff } = scenario;
  const labels = { app: POOL_NAME };
  const selector = { ...labels, instance: "$(relevo.instance)" };
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: POOL_NAME, namespace: NAMESPACE },
    spec: {
      driver: "service",
      size: { desired, floor: 1, max: desired + 3 },
      priority: "critical",
      traffic: { route: POOL_NAME, healthEvery: "2s", slowStart: "2s", queue: { limit: 50, wait: "2s" } },
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
                      image: "orders:1",
                      command: ["run"],
                      ports: [{ containerPort: 8080 }],
                      resources: { requests: { cpu: "100m", memory: "64Mi" } },
                      readinessProbe: { httpGet: { path: "/relevo/v1/health", port: 8080 }, periodSeconds: 2 },
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
