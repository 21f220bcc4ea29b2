/**
 * Writer leases as instances meet them: the access that an admission hands out, and the renewal that an instance calls in for. It is never polled.
 */
import type { Clock } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { LeaseTokens } from "../lease/token.ts";
import type { LeaseAccess, LeaseGrant } from "../model/protocol.ts";
import type { LeaseWatch } from "../observe/lease-watch.ts";
import type { Workload } from "../model/writer.ts";
import { isStoreUnavailable, type LeaseRenewal, type Store } from "../store/port.ts";

/** Told to a holder whose pool has no lease any more: it keeps what it has until it goes. */
export const KEPT_TTL_MS = 10_000;
/** Of one process: so many renewals at once, and so many a second in the long run. A holder needs three within its TTL. */
const BURST = 20;
const PER_SECOND = 10;
/** Processes whose rate is remembered; the one that was asked for longest ago goes first. */
const MAX_RATES = 20_000;

/** How an instance reaches this controller, and what proves who it is. Absent: no admission hands out a lease. */
export interface LeaseDoor {
  readonly tokens: LeaseTokens;
  /** Of `POST /v1/leases/renew`, as instances reach it. */
  readonly url: () => string;
}

export interface LeasesOptions {
  readonly store: Pick<Store, "renewLease">;
  readonly clock: Clock;
  readonly watch: LeaseWatch;
  readonly door: LeaseDoor | undefined;
  /** A holder came with an epoch that the store has not given: the store was rewound. */
  readonly onAhead: (pool: string, instance: string, epoch: Epoch) => void;
  /** Of the pool's document; null when it has no lease, or is not known. */
  readonly ttlOf: (pool: string) => number | null;
}

/** Nothing is said of its lease: whether it is fenced the store does not know either. It stops when its time runs out. */
function unproven({ instance, pool, epoch }: LeaseRenewal): RelevoError {
  return new RelevoError(
    "lease_epoch_unproven",
    `${instance} in ${pool} claims an epoch that the store has not given, and does not prove it`,
    {
      class: "retryable",
      found: epoch ?? "no epoch",
      allowed: "ordinal and proof as the grant had them",
      todo: "send back what the grant said, unchanged",
    },
  );
}

interface Rate {
  tokens: number;
  at: number;
}

export class Leases {
  readonly #options: LeasesOptions;
  readonly #rates = new Map<string, Rate>();

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** What the process that is admitted renews its lease with; undefined when there is no door. */
  accessFor(pool: string, instance: string, bootId: string, ttlMs: number): LeaseAccess | undefined {
    const { door } = this.#options;
    return door && { url: door.url(), token: door.tokens.issue({ pool, instance, bootId }), pool, instance, ttlMs };
  }

  /**
   * The caller has proven to be this process. Errors: `lease_not_held`, `lease_fenced`, `store_rewound` (see the store), `lease_epoch_unproven`,
   * `lease_too_often`, `store_unavailable` (these retryable).
   */
  async renew(renewal: LeaseRenewal): Promise<LeaseGrant> {
    const { store, watch, ttlOf } = this.#options;
    this.#take(renewal);
    const end = watch.asking(renewal.pool, renewal.instance);
    try {
      const workload = await store.renewLease(renewal, ttlOf(renewal.pool) ?? KEPT_TTL_MS);
      watch.renewed(workload);
      const { pool, ordinal, writerEpoch, ttlMs } = workload;
      return { pool, ordinal, writerEpoch, ttlMs, ...this.#proofFor(renewal, workload) };
    } catch (error) {
      // While the store cannot be written nobody can renew, and nobody's silence means anything.
      if (isStoreUnavailable(error)) watch.interrupted();
      if (renewal.epoch !== null && error instanceof RelevoError && error.code === "store_rewound") {
        if (!this.#isGiven(renewal, renewal.epoch)) throw unproven(renewal);
        this.#options.onAhead(renewal.pool, renewal.instance, renewal.epoch);
      }
      throw error;
    } finally {
      end();
    }
  }

  #proofFor({ pool, instance, bootId }: LeaseRenewal, { ordinal, writerEpoch }: Workload): Pick<LeaseGrant, "proof"> {
    const { door } = this.#options;
    return door === undefined ? {} : { proof: door.tokens.proofOf({ pool, instance, bootId, ordinal, epoch: writerEpoch }) };
  }

  /** One instance that lies would hold its pool for ever, and use up the eras: an epoch that only its caller knows of was given when we signed it. */
  #isGiven({ pool, instance, bootId, ordinal, proof }: LeaseRenewal, epoch: Epoch): boolean {
    if (ordinal === undefined || proof === undefined) return false;
    return this.#options.door?.tokens.isProofOf(proof, { pool, instance, bootId, ordinal, epoch }) === true;
  }

  #take({ pool, instance, bootId }: LeaseRenewal): void {
    const key = `${pool} ${instance} ${bootId}`;
    const now = this.#options.clock.monotonic();
    const known = this.#rates.get(key);
    const tokens = known === undefined ? BURST : Math.min(BURST, known.tokens + ((now - known.at) * PER_SECOND) / 1_000);
    this.#rates.delete(key);
    // A refusal costs nothing, or one that always asks a little too early would never be heard.
    this.#rates.set(key, { tokens: tokens < 1 ? tokens : tokens - 1, at: now });
    const [oldest] = this.#rates.keys();
    if (this.#rates.size > MAX_RATES && oldest !== undefined) this.#rates.delete(oldest);
    if (tokens < 1)
      throw new RelevoError("lease_too_often", `${instance} renews its lease too often`, {
        class: "retryable",
        allowed: `${PER_SECOND} a second`,
        todo: "renew three times within the TTL",
      });
  }
}
