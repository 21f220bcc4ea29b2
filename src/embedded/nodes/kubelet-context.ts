/** What the parts of one node's kubelet share. */
import type { KubeObject } from "../../kube/api.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { ClusterAccess } from "../controllers/access.ts";
import type { EventRecorder } from "../controllers/events.ts";
import type { Machine, PodRuntime } from "./pod-runtime.ts";

export interface KubeletOptions {
  /** Between two renewals of the node's lease. Kubernetes: 10 s. */
  readonly heartbeatMs: number;
  /** Readiness and startup probes until their first success. */
  readonly eagerProbeMs: number;
  readonly restartBackoff: { readonly firstMs: number; readonly maxMs: number; readonly resetAfterMs: number };
  /** Into every container's environment. */
  readonly env: Readonly<Record<string, string>>;
}

export const DEFAULT_KUBELET_OPTIONS: KubeletOptions = {
  heartbeatMs: 1_000,
  eagerProbeMs: 100,
  restartBackoff: { firstMs: 1_000, maxMs: 60_000, resetAfterMs: 600_000 },
  env: {},
};

export interface KubeletContext {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly runtime: PodRuntime;
  readonly machine: Machine;
  readonly events: EventRecorder;
  readonly options: KubeletOptions;
  readonly env: Readonly<Record<string, string>>;
  /** Aborts when the machine is gone: from then on nothing may be said about its pods. */
  readonly signal: AbortSignal;
  stamp(): string;
  findConfig(namespace: string, kind: "ConfigMap" | "Secret", name: string): Promise<KubeObject | undefined>;
}
