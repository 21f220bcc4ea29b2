/** A cluster for tests: nothing is real, time is virtual, chance is seeded. */
import type { Ids } from "../../kernel/ids.ts";
import type { Random } from "../../kernel/random.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { KubeObject, KubeObjectDraft, ResourceType } from "../../kube/api.ts";
import { DEPLOYMENTS, PODS } from "../../kube/resources.ts";
import { createSimulatedCluster, type SimulatedCluster, type SimulatedClusterOptions } from "../cluster.ts";
import { isReady, type PodView } from "../controllers/views.ts";
import { DEFAULT_MODEL, type ContainerModel, SimulatedRuntime } from "../nodes/simulated-runtime.ts";
import type { ContainerStart, Machine } from "../nodes/pod-runtime.ts";

/** Mulberry32: small, and the same everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return {
    next(): number {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}

export function countingIds(): Ids {
  let count = 0;
  return { next: (prefix) => `${prefix}-${(++count).toString(16).padStart(10, "0")}` };
}

export interface TestCluster extends SimulatedCluster {
  readonly clock: VirtualClock;
  readonly runtime: SimulatedRuntime;
  pods(): readonly PodView[];
  readyPods(): readonly PodView[];
  find(type: ResourceType, name: string, namespace?: string): KubeObject | undefined;
  /** Lets time pass until the condition holds; fails when it does not within the limit. */
  until(sentence: string, condition: () => boolean, limitMs?: number): Promise<void>;
  deploy(name: string, replicas: number, change?: Partial<DeploymentChange>): Promise<KubeObject>;
}

export interface DeploymentChange {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly pod: Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface TestClusterOptions extends Partial<SimulatedClusterOptions> {
  readonly seed?: number;
  /** What the test lets go; a `clock` given besides may be built on it. */
  readonly virtual?: VirtualClock;
  readonly bootMs?: (machine: Machine) => number;
  readonly model?: (start: ContainerStart) => Partial<ContainerModel>;
}

export async function testCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const clock = options.virtual ?? new VirtualClock();
  const random = seededRandom(options.seed ?? 1);
  const runtime = new SimulatedRuntime({
    clock,
    random,
    bootMs: options.bootMs ?? 10,
    model: (start) => ({ ...DEFAULT_MODEL, ...options.model?.(start) }),
  });
  const cluster = await createSimulatedCluster({ clock, random, ids: countingIds(), runtime, nodes: 3, ...options });
  const pods = (): readonly PodView[] => cluster.store.list(PODS).items as readonly PodView[];
  const test: TestCluster = {
    ...cluster,
    clock,
    runtime,
    pods,
    readyPods: () => pods().filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined),
    find: (type, name, namespace) => cluster.store.find({ type, namespace: type.namespaced ? (namespace ?? "default") : undefined, name }),
    async until(sentence, condition, limitMs = 60_000) {
      if (!(await clock.advanceUntil(condition, limitMs))) throw new Error(`not within ${limitMs} ms: ${sentence}`);
    },
    deploy: (name, replicas, change = {}) => cluster.api.create(DEPLOYMENTS, deployment(name, replicas, change), { namespace: "default" }),
  };
  await test.until("all nodes are up", () => cluster.provisioner.nodes().filter((node) => node.isReady).length === (options.nodes ?? 3));
  return test;
}

export function deployment(name: string, replicas: number, change: Partial<DeploymentChange> = {}): KubeObjectDraft {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      ...change.spec,
      template: {
        metadata: { labels: { app: name }, ...(change.annotations === undefined ? {} : { annotations: change.annotations }) },
        spec: {
          terminationGracePeriodSeconds: 2,
          containers: [
            {
              name: "main",
              image: "example",
              command: ["run"],
              ports: [{ containerPort: 8080 }],
              readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 },
            },
          ],
          ...change.pod,
        },
      },
    },
  };
}
