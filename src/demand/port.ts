/**
 * How demand is read: one adapter per kind of signal, in a folder of its own. An adapter translates and never judges: numbers are handed on as the source
 * gave them (`validity.ts` judges), what is missing is an error with a code, and nothing is remembered between two looks.
 */
import type { Clock } from "../kernel/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import type { DemandReading, SignalKind, SignalOf } from "../model/demand.ts";
import type { Connection } from "./connections.ts";

export interface DemandPorts {
  readonly clock: Clock;
  /** Of the site's API server. */
  readonly kube: Pick<KubeApi, "get" | "list">;
}

/** What a signal needs where it is read, for documents and for what is said when it is absent (K2). */
export interface SignalNeeds {
  /** `Kafka 2.4 or newer`. */
  readonly infrastructure: string;
  /** Least privilege, in the terms of that infrastructure: `Describe on the topic and the group`. */
  readonly permissions: readonly string[];
}

/**
 * One open signal of one pool. Errors are RelevoErrors with one of these codes, which are the troubles of `model/demand.ts` with a prefix: `demand_unreachable`
 * (retryable), `demand_credentials_refused`, `demand_missing`, `demand_partial`, `demand_not_a_number`, `demand_type_changed`.
 */
export interface DemandSource {
  /** One real call, ended by the signal. */
  read(signal: AbortSignal): Promise<DemandReading>;
  /**
   * Where the source tells of changes by itself: calls back when a look would answer another number, at most every 100 ms; a source that lost its line calls
   * back too. Returns how to stop. Absent: it is polled.
   */
  onChange?(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface DemandAdapter<K extends SignalKind = SignalKind> {
  readonly kind: K;
  readonly needs: SignalNeeds;
  /** What `DemandReading.flow` will be, where the document alone says it; null: the source says it. */
  flowOf(spec: SignalOf<K>): string | null;
  /** Opens no socket before the first `read`. `connection` is of the family that `CONNECTION_OF` names; undefined for kinds without one. */
  open(spec: SignalOf<K>, connection: Connection | undefined, ports: DemandPorts & { readonly namespace: string }): DemandSource;
}
