/**
 * What the running clusters of a pool retry, as their own processes say (I24, decision 0019): asked once of each process, and of nothing that is written anywhere.
 *
 * 1. A proof belongs to a process (instance and boot id). A new one is unproven, and a proof that nobody needs is forgotten.
 * 2. A pool's policy is proven while every process of it that has work, or may get some, said the same; else nothing is.
 * 3. Kept in memory: whoever takes the pool over asks anew, and takes nothing for proven until then.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import { isRouted } from "../model/phase.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { RetryPolicy } from "../model/trino.ts";
import type { PoolSnapshot, Proofs } from "../plan/snapshot.ts";
import type { ControllerLog } from "./pass.ts";
import type { ProofSource } from "./pass-maker.ts";

export interface ProvableProcess {
  readonly host: string;
  readonly port: number;
  readonly user: string;
}

export interface RetryProofsParts {
  /** As the engine took it for a query; null: it does not tell. */
  readonly ask: (process: ProvableProcess) => Promise<RetryPolicy | null>;
  readonly clock: Clock;
  /** Something was proven that was not before. */
  readonly onProven: (pool: string) => void;
  readonly log: ControllerLog;
}

const ASK_AGAIN_MS = { first: 15_000, max: 300_000 };

interface Entry {
  policy: RetryPolicy | null;
  isAsking: boolean;
  failures: number;
  askAgainAt: Instant;
}

type Seen = Pick<PoolSnapshot, "pool" | "spec"> & { readonly instances: readonly { readonly record: InstanceRecord }[] };

export class RetryProofs implements ProofSource {
  readonly #parts: RetryProofsParts;
  /** By pool, then by process. */
  readonly #pools = new Map<string, Map<string, Entry>>();

  constructor(parts: RetryProofsParts) {
    this.#parts = parts;
  }

  of(pool: string): Proofs | null {
    const policies = new Set([...(this.#pools.get(pool)?.values() ?? [])].map(({ policy }) => policy));
    const [retryPolicy = null] = policies;
    return policies.size === 1 && retryPolicy !== null ? { retryPolicy } : null;
  }

  /** Asks those that were not asked yet. Where nothing but NONE is declared nothing depends on it. */
  observe({ pool, spec, instances }: Seen): void {
    if (spec.driver !== "trino" || spec.trino.retryPolicy === "NONE") return this.forget(pool);
    const known = this.#pools.get(pool);
    const entries = new Map<string, Entry>();
    this.#pools.set(pool, entries);
    for (const { record } of instances) {
      const process = processOf(record, spec.trino.user);
      if (process === undefined) continue;
      const key = `${record.id} ${record.incarnation.bootId}`;
      const entry = known?.get(key) ?? { policy: null, isAsking: false, failures: 0, askAgainAt: 0 };
      entries.set(key, entry);
      if (entry.policy === null && !entry.isAsking && this.#parts.clock.now() >= entry.askAgainAt)
        void this.#ask(pool, key, entry, process);
    }
  }

  forget(pool: string): void {
    this.#pools.delete(pool);
  }

  async #ask(pool: string, key: string, entry: Entry, process: ProvableProcess): Promise<void> {
    const { ask, clock, onProven, log } = this.#parts;
    entry.isAsking = true;
    try {
      entry.policy = await ask(process);
      if (entry.policy === null) log("info", "a cluster does not tell what it retries: nothing relies on it", { pool, process: key });
    } catch (error) {
      log("info", "what a cluster retries is not proven yet", { pool, process: key, error });
    }
    entry.isAsking = false;
    if (entry.policy === null) {
      entry.askAgainAt = clock.now() + Math.min(ASK_AGAIN_MS.first * 2 ** entry.failures++, ASK_AGAIN_MS.max);
      return;
    }
    if (this.#pools.get(pool)?.get(key) === entry) onProven(pool);
  }
}

/** Undefined: it has no work and gets none, or nobody knows where it is. */
function processOf({ phase, incarnation: { host, port, bootId } }: InstanceRecord, user: string): ProvableProcess | undefined {
  if (!isRouted(phase) && phase !== "draining") return undefined;
  return host === null || port === null || bootId === null ? undefined : { host, port, user };
}
