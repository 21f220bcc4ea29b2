/**
 * Which pools this replica has, and which it is to have. Authority is the store's: a claim raises the pool's epoch, and nothing that anybody believes here
 * commits anything under another one (I4).
 *
 * 1. A pool is claimed only where it is assigned, and only while the others can see that this replica lives.
 * 2. While the owner of before lives too, it is given a while to let the pool go in good order.
 * 3. After a claim the gateway replicas are read from the store before the pool is looked at: see `GatewayRegistry`.
 * 4. Under one name there is one process: when another one claims under ours, that is told, and the pool is not torn to and fro.
 * 5. A replica that nobody hears of keeps what it has until the store says otherwise, and takes nothing.
 */
import type { Clock } from "../kernel/clock.ts";
import { type Epoch, epochParts } from "../kernel/epoch.ts";
import { describeError, RelevoError } from "../kernel/errors.ts";
import type { Authority, Store } from "../store/port.ts";
import type { GatewayRegistry } from "./gateways.ts";
import type { Member, Members } from "./members.ts";
import { assigneeOf } from "./ownership.ts";
import type { ControllerLog } from "./pass.ts";

/** For an owner that lives to let a pool go; beyond it the pool is taken, and what it had begun is understood by the probes. */
const LET_GO_WITHIN_MS = 3_000;
/** How soon it is looked at again meanwhile. */
export const LOOK_AGAIN_MS = 100;

export interface ClaimsOptions {
  readonly store: Pick<Store, "claim" | "letGo" | "readPool">;
  readonly members: Members;
  readonly gateways: Pick<GatewayRegistry, "refresh">;
  readonly clock: Clock;
  readonly log: ControllerLog;
}

export class Claims {
  readonly #options: ClaimsOptions;
  readonly #held = new Map<string, Authority>();
  /** Claimed, and the gateway replicas not read since. */
  readonly #fresh = new Map<string, Authority>();
  /** Monotonic ms since which a pool is assigned here and another one that lives has it. */
  readonly #awaited = new Map<string, number>();
  /** As claimed by this process last, unless it let the pool go since, or does not know what became of its claim. */
  readonly #taken = new Map<string, Epoch>();
  #assignees = new Map<string, string | undefined>();

  constructor(options: ClaimsOptions) {
    this.#options = options;
    options.members.onChange(() => {
      this.#assignees = new Map();
    });
  }

  of(pool: string): Authority | undefined {
    return this.#held.get(pool);
  }

  /** Also those of which the gateway replicas were not read yet: they are this one's to hand over. */
  pools(): readonly string[] {
    return [...this.#held.keys(), ...this.#fresh.keys()];
  }

  /** Whether this replica is to act for the pool. */
  isMine(pool: string): boolean {
    const { members } = this.#options;
    if (!members.isShared) return true;
    return members.isHeld() ? this.#assigneeOf(pool) === members.self : this.#held.has(pool);
  }

  /** Whose the pool is by assignment, when that is another replica that lives. */
  otherOf(pool: string): Member | undefined {
    const { members } = this.#options;
    if (!members.isShared || this.isMine(pool)) return undefined;
    const assignee = this.#assigneeOf(pool);
    return members.live().find(({ id }) => id === assignee && id !== members.self);
  }

  /** Undefined: not yet. Somebody who lives has it still, or the others cannot see that this one lives. */
  async take(pool: string): Promise<Authority | undefined> {
    const known = this.#held.get(pool);
    if (known !== undefined) return known;
    const { members, gateways } = this.#options;
    if (members.isShared && (await this.#mustWait(pool))) return undefined;
    const authority = this.#fresh.get(pool) ?? (await this.#claim(pool));
    if (members.isShared) {
      this.#fresh.set(pool, authority);
      await gateways.refresh();
      this.#options.log("info", "a pool is ours now", { pool, epoch: authority.epoch });
    }
    this.#fresh.delete(pool);
    this.#awaited.delete(pool);
    this.#held.set(pool, authority);
    if (members.isShared) this.#taken.set(pool, authority.epoch);
    return authority;
  }

  /** Hands the pool over; whoever has it already keeps it. A store that is away is no reason to wait: the next owner's claim does the same. */
  async letGo(pool: string): Promise<void> {
    const authority = this.#held.get(pool) ?? this.#fresh.get(pool);
    this.drop(pool);
    this.#taken.delete(pool);
    if (authority === undefined) return;
    try {
      await this.#options.store.letGo(authority);
    } catch (error) {
      if (error instanceof RelevoError && error.code === "stale_epoch") return;
      this.#options.log("warn", "a pool could not be handed over in good order", { pool, error: describeError(error) });
    }
  }

  /** It is somebody else's, as the store says, or nobody's. */
  drop(pool: string): void {
    this.#held.delete(pool);
    this.#fresh.delete(pool);
    this.#awaited.delete(pool);
  }

  clear(): void {
    for (const pool of this.pools()) this.drop(pool);
  }

  /** Of those that this replica believes to have: which ones somebody else has claimed since. */
  lostTo(epochs: ReadonlyMap<string, Epoch>): readonly string[] {
    return [...this.#held.values()].filter(({ pool, epoch }) => epochs.get(pool) !== epoch).map(({ pool }) => pool);
  }

  #claim(pool: string): Promise<Authority> {
    const { store, members, clock } = this.#options;
    // Should its answer be lost, the claim may be there all the same.
    this.#taken.delete(pool);
    return store.claim(pool, members.self, clock.now());
  }

  async #mustWait(pool: string): Promise<boolean> {
    const { store, members, clock } = this.#options;
    if (!members.isHeld()) return true;
    if (this.#fresh.has(pool)) return false;
    const rows = await store.readPool(pool);
    const owner = rows?.owner ?? null;
    const taken = this.#taken.get(pool);
    // A recovery of the store raises the era and leaves the owner.
    const isNamesake =
      owner === members.self && taken !== undefined && epochParts(taken).era === epochParts(rows?.authorityEpoch ?? taken).era;
    if (owner === null || (owner === members.self && !isNamesake) || !members.live().some(({ id }) => id === owner)) return false;
    const now = clock.monotonic();
    const since = this.#awaited.get(pool) ?? now;
    if (isNamesake && since === now) this.#options.log("error", "another process has this replica's name", { replica: members.self, pool });
    this.#awaited.set(pool, since);
    return now - since < LET_GO_WITHIN_MS;
  }

  #assigneeOf(pool: string): string | undefined {
    if (!this.#assignees.has(pool))
      this.#assignees.set(
        pool,
        assigneeOf(
          pool,
          this.#options.members.live().map(({ id }) => id),
        ),
      );
    return this.#assignees.get(pool);
  }
}
