/** Collects one plan while the policies run: what is decided, what is left alone and why, and when to look again. */
import type { Instant } from "../kernel/clock.ts";
import type { Reason } from "../model/reasons.ts";
import type { Decision, Effect, Hold, Move, Plan } from "./decision.ts";

/** Reasons of one that is as it should be. */
const WELL: readonly Reason["code"][] = ["serving", "standby_ready"];

const BESIDE: readonly Decision["kind"][] = [
  "cordon_node",
  "protect_pod",
  "unprotect_pod",
  "trust",
  "pass_writer",
  "drain_member",
  "replace_member",
];

export class Draft {
  readonly #decisions: (Effect | Move)[] = [];
  readonly #holds: Hold[] = [];
  readonly #moved = new Set<string>();
  readonly #givenUp = new Set<string>();
  readonly #cordoned = new Set<string>();
  #nextLookAt: Instant | null = null;
  #recommendation: number | null = null;

  decide(decision: Effect | Move): void {
    this.#decisions.push(decision);
    if ("instance" in decision && !BESIDE.includes(decision.kind)) this.#moved.add(decision.instance);
    if (decision.kind === "move" && decision.to === "failed") this.#givenUp.add(decision.instance);
    if (decision.kind === "cordon_node") this.#cordoned.add(decision.node.uid);
  }

  /** Why `subject` (an instance, a node, or empty for the pool) is left as it is; with `until`, time alone may change that. */
  hold(subject: string, reason: Reason, until?: Instant): void {
    this.#holds.push(until === undefined ? { kind: "hold", subject, reason } : { kind: "hold", subject, reason, until });
    if (until !== undefined) this.lookAgainAt(until);
  }

  /** The size that the demand wants now; null: nothing can be said. */
  recommend(size: number | null): void {
    this.#recommendation = size;
  }

  lookAgainAt(at: Instant): void {
    this.#nextLookAt = this.#nextLookAt === null ? at : Math.min(this.#nextLookAt, at);
  }

  /** Where the instance itself goes is decided. What is done beside it (its node, its pods, its trust) may fail for ever and must not keep it. */
  hasDecisionFor(instance: string): boolean {
    return this.#moved.has(instance);
  }

  /** This plan gives a standby away. */
  takesStandby(): boolean {
    return this.#decisions.some(({ kind }) => kind === "take_standby");
  }

  /** This plan gives the candidate up. */
  givesUp(instance: string): boolean {
    return this.#givenUp.has(instance);
  }

  /** How many that shall serve this plan makes. */
  added(): number {
    return this.#decisions.filter((decision) => decision.kind === "add_instance" && decision.purpose !== "standby").length;
  }

  /** Of them, those for places that nobody left. */
  fills(): number {
    return this.#decisions.filter((decision) => decision.kind === "add_instance" && decision.purpose === "fill").length;
  }

  /** Instances whose present process never writes again after this plan: it is fenced or sealed, or another one takes its place. */
  endedProcesses(): ReadonlySet<string> {
    return this.#instancesOf(
      (decision) =>
        (decision.kind === "trust" && decision.to === "fenced") ||
        decision.kind === "renew_incarnation" ||
        (decision.kind === "move" && decision.to === "sealed"),
    );
  }

  /** Those, and the ones that this plan believes less than before. */
  doubtedProcesses(): ReadonlySet<string> {
    return new Set([...this.endedProcesses(), ...this.#instancesOf((decision) => decision.kind === "trust" && decision.to === "suspect")]);
  }

  #instancesOf(matches: (decision: Effect | Move) => boolean): ReadonlySet<string> {
    return new Set(this.#decisions.flatMap((decision) => ("instance" in decision && matches(decision) ? [decision.instance] : [])));
  }

  hasCordon(nodeUid: string): boolean {
    return this.#cordoned.has(nodeUid);
  }

  isIdle(): boolean {
    return this.#decisions.length === 0 && this.#holds.every((hold) => WELL.includes(hold.reason.code));
  }

  finish(): Plan {
    return { decisions: this.#decisions, holds: this.#holds, nextLookAt: this.#nextLookAt, recommendation: this.#recommendation };
  }
}
