/** Whether a pass may act on what it reads of the store: the witnesses are asked, and a controller that has just begun waits until they have spoken. */
import type { Clock, Instant } from "../kernel/clock.ts";
import { epochParts } from "../kernel/epoch.ts";
import { strangersOf, type StrangersInput } from "../observe/strangers.ts";
import type { Rewound } from "../plan/snapshot.ts";
import type { Authority, PoolRows, Store, StoreEra } from "../store/port.ts";
import { type GatewayRegistry, REPORTS_WITHIN_MS } from "./gateways.ts";
import type { Witnesses } from "./rewound.ts";

export interface StoreTrustParts {
  readonly store: Store;
  readonly gateways: GatewayRegistry;
  readonly witnesses: Witnesses;
  readonly world: StrangersInput["world"];
  readonly clock: Clock & { notBefore?(stamp: Instant): void };
}

export class StoreTrust {
  readonly #parts: StoreTrustParts;
  /** Null before it was read. */
  #era: StoreEra | null = null;
  #witnessesBy: Instant = Number.POSITIVE_INFINITY;

  constructor(parts: StoreTrustParts) {
    this.#parts = parts;
  }

  /** This controller has just begun to hear gateway replicas. */
  begin(): void {
    this.#witnessesBy = this.#parts.clock.now() + REPORTS_WITHIN_MS;
  }

  /** Some replica that may live has not said yet what it has applied. */
  get isAnyAwaited(): boolean {
    const { clock, gateways } = this.#parts;
    return clock.now() < this.#witnessesBy && !gateways.haveAllReported;
  }

  /** When the store was last recovered, as far as is known. */
  get recoveredAt(): Instant | null {
    return this.#era?.recovered?.at ?? null;
  }

  /** Who knows more than the store; looked at again with what is in it now, because a report may be newer than the rows. `route`: see `Witnesses`. */
  async rewoundBy(rows: PoolRows, route: string | null, authority: Authority | undefined): Promise<Rewound | null> {
    const { store, gateways, witnesses } = this.#parts;
    const judge = (seen: PoolRows) => witnesses.judge(seen, route, gateways.views(), seen.authorityEpoch === authority?.epoch);
    if (judge(rows) === null) return null;
    const again = await store.readPool(rows.pool);
    const rewound = again ? judge(again) : null;
    // Before anything is gone on with: should this process end, the next one knows only the replicas that are in the store.
    if (rewound !== null) await gateways.registerAgain();
    return rewound;
  }

  /**
   * A controller that has just begun remembers nothing, and a store that was restored meanwhile looks sound until a gateway replica has said what it has. Null: nobody is awaited, as of a
   * pool without a route, of which no replica ever hears.
   */
  witnessesAwaitedUntil(rows: PoolRows, isRouted: boolean): Instant | null {
    return isRouted && this.isAnyAwaited && !this.#isNew(rows) ? this.#witnessesBy : null;
  }

  /** Nobody owned the pool before, as the store says and as the cluster shows: there is nothing of it yet. */
  #isNew({ pool, authorityEpoch, instances }: PoolRows): boolean {
    if (epochParts(authorityEpoch).counter > 1) return false;
    const [namespace = "", name = ""] = pool.split("/");
    const known = new Set(instances.map(({ id }) => id));
    return strangersOf({ world: this.#parts.world, namespace, name, known }).length === 0;
  }

  /** Another controller may have recovered the store. */
  async noteEra({ authorityEpoch }: PoolRows): Promise<void> {
    if (this.#era !== null && epochParts(authorityEpoch).era <= this.#era.era) return;
    this.#era = await this.#parts.store.readEra();
    if (this.#era.recovered !== null) this.#parts.clock.notBefore?.(this.#era.recovered.at);
  }

  recovered(era: StoreEra): void {
    this.#era = era;
  }
}
