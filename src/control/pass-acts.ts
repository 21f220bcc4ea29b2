/** What comes of a plan: moves are committed, effects are handed to the executor. */
import { changesOf } from "../act/changes-of.ts";
import { type ClusterSetup, draftStep } from "../act/draft-step.ts";
import type { Executor } from "../act/executor.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Effect, Move } from "../plan/decision.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import type { Authority, Change, Store } from "../store/port.ts";
import type { ControllerLog, Pass } from "./pass.ts";
import { describe, isEffect, sameReasons, standingReasons } from "./pass-notes.ts";

export interface PassActsParts {
  readonly store: Pick<Store, "commit" | "getBlueprint">;
  readonly executor: Executor;
  readonly ids: Ids;
  readonly cluster?: ClusterSetup;
  readonly log: ControllerLog;
}

export class PassActs {
  readonly #parts: PassActsParts;

  constructor(parts: PassActsParts) {
    this.#parts = parts;
  }

  async commitMoves(authority: Authority, { snapshot, plan, at }: Pass): Promise<boolean> {
    const { store, ids } = this.#parts;
    const moves = plan.decisions.filter((decision): decision is Move => !isEffect(decision));
    const changes: Change[] = moves.flatMap((move) => changesOf(move, snapshot, ids));
    const reasons = standingReasons(plan, snapshot.reasons, at);
    if (!sameReasons(reasons, snapshot.reasons)) changes.push({ kind: "set_reasons", reasons });
    if (changes.length === 0) return false;
    await store.commit(authority, changes, at);
    for (const move of moves) this.#parts.log("info", move.kind, { pool: authority.pool, ...describe(move) });
    return moves.length > 0;
  }

  /** Cordons before all others: what keeps a node from getting more work waits for nothing. */
  async begin(authority: Authority, { snapshot, plan }: Pass): Promise<void> {
    const effects = plan.decisions.filter(isEffect);
    const blueprintOf = this.#blueprints(snapshot);
    for (const effect of [...effects.filter(isCordon), ...effects.filter((each) => !isCordon(each))]) {
      try {
        const blueprint = effect.kind === "create_instance" ? await blueprintOf(effect) : undefined;
        const draft = draftStep(effect, snapshot, blueprint, this.#parts.cluster);
        void this.#parts.executor.start(authority, draft);
        this.#parts.log("info", effect.kind, { pool: authority.pool, ...describe(effect) });
      } catch (error) {
        // One effect that cannot be drafted must not keep the others back (I15).
        this.#parts.log("error", "an effect could not be begun", { pool: authority.pool, ...describe(effect), error });
      }
    }
  }

  /**
   * An instance is made from its own immutable snapshot, whatever the pool's document says by now. Of many that are made at once most have the same: it is read once,
   * for each read waits for its turn in the store, and the pass with it.
   */
  #blueprints({ instances }: PoolSnapshot): (effect: CreateInstance) => Promise<unknown> {
    const known = new Map<string, Promise<unknown>>();
    const hashes = new Map(instances.map(({ record }) => [record.id, record.blueprintHash]));
    return async ({ instance }) => {
      const hash = hashes.get(instance);
      if (hash === undefined) return undefined;
      const read = known.get(hash) ?? this.#parts.store.getBlueprint(hash);
      known.set(hash, read);
      return read;
    };
  }
}

type CreateInstance = Extract<Effect, { readonly kind: "create_instance" }>;

const isCordon = ({ kind }: Effect): boolean => kind === "cordon_node";
