/** Kubernetes Events: the same message about the same object is counted, not repeated. How many there are is bounded by the store. */
import { isNotFound, type KubeObject } from "../../kube/api.ts";
import { EVENTS } from "../../kube/resources.ts";
import type { ClusterAccess } from "./access.ts";

/** Messages whose repetition is noticed. */
const MAX_KEPT = 2_000;

interface Kept {
  readonly name: string;
  readonly namespace: string;
  count: number;
}

export class EventRecorder {
  readonly #access: ClusterAccess;
  readonly #component: string;
  readonly #enabled: boolean;
  readonly #kept = new Map<string, Kept>();

  constructor(access: ClusterAccess, component: string, enabled = true) {
    this.#access = access;
    this.#component = component;
    this.#enabled = enabled;
  }

  /** Best effort by nature: a failure is logged and forgotten. */
  record(about: KubeObject, type: "Normal" | "Warning", reason: string, message: string): void {
    if (!this.#enabled || this.#access.signal.aborted) return;
    void this.#write(about, type, reason, message).catch((error: unknown) =>
      this.#access.log("debug", "event not recorded", { reason, error }),
    );
  }

  async #write(about: KubeObject, type: "Normal" | "Warning", reason: string, message: string): Promise<void> {
    const namespace = about.metadata.namespace ?? "default";
    const key = `${about.metadata.uid} ${reason} ${message}`;
    const now = this.#access.stamp();
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      kept.count++;
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      if (await this.#count(kept, now)) return;
    }
    const name = this.#access.ids.next(about.metadata.name.slice(0, 200)).replace(/-([^-]*)$/, ".$1");
    this.#kept.set(key, { name, namespace, count: 1 });
    await this.#access.create(
      EVENTS,
      {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name, namespace },
        involvedObject: {
          apiVersion: about.apiVersion,
          kind: about.kind,
          name: about.metadata.name,
          namespace: about.metadata.namespace,
          uid: about.metadata.uid,
          resourceVersion: about.metadata.resourceVersion,
        },
        type,
        reason,
        message,
        count: 1,
        firstTimestamp: now,
        lastTimestamp: now,
        eventTime: null,
        source: { component: this.#component },
        reportingComponent: this.#component,
        reportingInstance: "",
      },
      namespace,
    );
    this.#dropOldest();
  }

  /** False when the store has dropped it meanwhile: it keeps only the newest. */
  async #count(kept: Kept, now: string): Promise<boolean> {
    try {
      await this.#access.patch({ type: EVENTS, namespace: kept.namespace, name: kept.name }, { count: kept.count, lastTimestamp: now });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }

  #dropOldest(): void {
    if (this.#kept.size <= MAX_KEPT) return;
    for (const key of this.#kept.keys()) {
      this.#kept.delete(key);
      return;
    }
  }
}
