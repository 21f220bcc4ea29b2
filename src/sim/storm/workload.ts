/** One workload of the fleet: its writer's epoch, what of its state is committed, where it runs, what has become of it. */
import type { Instant } from "../../kernel/clock.ts";
import { epoch, type Epoch } from "../../kernel/epoch.ts";
import type { Random } from "../../kernel/random.ts";
import type { Loss } from "../../model/phase.ts";
import { isAcceptedWriter } from "../../model/writer.ts";
import type { FleetClass } from "./fleet.ts";
import type { Doom } from "./notices.ts";
import type { Place } from "./sites.ts";
import type { Route } from "./traffic.ts";

export type Whereabouts = "home" | "waiting" | "moving" | "moved";

export class Workload {
  readonly id: string;
  readonly of: FleetClass;
  readonly doom: Doom;
  readonly route: Route;
  readonly random: Random;
  state: Whereabouts = "home";
  isHomeAlive = true;
  /** First write wins, for each class of loss: duplicates and later words change nothing. */
  readonly evidence = new Map<Loss, { readonly at: Instant; readonly deadline: Instant | null }>();
  /** Of the notice that came first, whatever it said. */
  noticedAt: Instant | null = null;
  servingAt: Instant | null = null;
  place: Place | null = null;
  /** Why it was given up, as long as it is. */
  unsavable: string | null = null;
  /** Acknowledged and gone. */
  lost = 0;
  isBreach = false;
  readonly #lostAt: Instant;
  /** Under which its home writes. */
  readonly homeEpoch: Epoch = epoch(1, 1);
  #counter = 1;
  #minAccepted: Epoch = this.homeEpoch;
  /** Null while nobody may write. */
  #holder: string | null = "home";
  #committedAt: Instant;
  #snapshotEvery: number | undefined;
  /** After its home is gone no checkpoint comes any more. */
  #frozenAt: Instant | null = null;

  constructor(doom: Doom, route: Route, random: Random, now: Instant) {
    const { member } = doom;
    this.id = member.id;
    this.of = member.of;
    this.doom = doom;
    this.route = route;
    this.random = random;
    this.#committedAt = now - member.checkpointAgeMs;
    this.#lostAt = now + doom.lostAt;
  }

  /** False when it is nothing new. */
  record(loss: Loss, now: Instant, deadline: Instant | null): boolean {
    if (this.evidence.has(loss)) return false;
    this.evidence.set(loss, { at: now, deadline });
    this.noticedAt ??= now;
    return true;
  }

  /** It served at its new place before the old one was lost. */
  get isEvacuated(): boolean {
    return this.servingAt !== null && this.servingAt <= this.#lostAt;
  }

  // ---- state

  /** No checkpoints: a snapshot at `at`, and again every so often. */
  onlyFromSnapshots(at: Instant, everyMs: number): void {
    this.#committedAt = at;
    this.#snapshotEvery = everyMs;
  }

  /** Checkpoints go on every so often while its home lives. */
  committedAt(now: Instant): Instant {
    const every = this.#snapshotEvery ?? this.of.state.checkpointEvery;
    const until = this.#frozenAt ?? now;
    return every > 0 && Number.isFinite(every) ? until - ((((until - this.#committedAt) % every) + every) % every) : this.#committedAt;
  }

  /** A round of the delta has arrived: what was written until `at` is there. */
  commit(at: Instant): void {
    if (at > this.committedAt(at)) this.#committedAt = at;
  }

  /** What its home wrote since. */
  deltaBytes(now: Instant): number {
    if (this.#frozenAt !== null) return 0;
    return Math.min(this.of.state.size, ((now - this.committedAt(now)) / 1_000) * this.of.state.changes);
  }

  loseHome(now: Instant): void {
    this.#frozenAt = now;
    this.isHomeAlive = false;
  }

  // ---- the writer

  get epoch(): Epoch {
    return epoch(1, this.#counter);
  }

  get minAccepted(): Epoch {
    return this.#minAccepted;
  }

  get holder(): string | null {
    return this.#holder;
  }

  /** The tombstone: nobody may write until the lease passes. */
  fence(): void {
    this.#holder = null;
    this.#minAccepted = epoch(1, this.#counter + 1);
  }

  passTo(holder: string): Epoch {
    this.#counter += 1;
    this.#minAccepted = epoch(1, this.#counter);
    this.#holder = holder;
    return this.epoch;
  }

  /** Where a result lands. */
  lands(written: Epoch): boolean {
    return isAcceptedWriter(written, this.#minAccepted);
  }
}
