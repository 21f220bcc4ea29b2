/**
 * The one place where obligations are counted. At every moment, for every route: accepted = completed + inFlight + queued + rejected + cut (I14).
 *
 * An obligation is accepted in flight, may go to the queue and back, is held by at most one member at a time, and ends exactly once:
 *   `completed`  answered by an instance (whatever its status), or given up by its own client
 *   `rejected`   an explicit error of the gateway
 *   `cut`        what was streaming ended by an explicit close
 */
import { assert } from "../kernel/assert.ts";
import type { RouteCounts } from "../model/membership.ts";
import type { MemberLoad, MemberState } from "./membership.ts";

export type Outcome = "completed" | "rejected" | "cut";

export interface RouteLedger {
  readonly route: string;
  readonly counts: RouteCounts;
  /** Why, by code: how often each outcome came. */
  readonly outcomes: Map<string, number>;
}

/** What the ledger keeps about one request; only the ledger changes it. */
export interface Obligation {
  obligationState: "new" | "inFlight" | "queued" | "ended";
  readonly ledger: RouteLedger;
  heldBy: MemberState | null;
  upgraded: boolean;
}

interface Session {
  readonly id: string;
  readonly member: MemberState;
  readonly ttlMs: number;
  /** Monotonic ms. */
  until: number;
}

export class Ledger {
  readonly #routes = new Map<string, RouteLedger>();
  readonly #sessions = new Map<string, Session>();

  /** The counts of a route; they outlive its membership. */
  of(route: string): RouteLedger {
    let ledger = this.#routes.get(route);
    if (ledger === undefined) {
      ledger = {
        route,
        counts: { accepted: 0, completed: 0, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 },
        outcomes: new Map(),
      };
      this.#routes.set(route, ledger);
    }
    return ledger;
  }

  /** Of a route that is gone; what still runs keeps its counts until then. */
  forget(route: string): void {
    const counts = this.#routes.get(route)?.counts;
    if (counts !== undefined && counts.inFlight + counts.queued === 0) this.#routes.delete(route);
  }

  routes(): Iterable<RouteLedger> {
    return this.#routes.values();
  }

  accept(obligation: Obligation): void {
    assert(obligation.obligationState === "new", "a request is accepted once");
    obligation.obligationState = "inFlight";
    obligation.ledger.counts.accepted += 1;
    obligation.ledger.counts.inFlight += 1;
  }

  queue(obligation: Obligation): void {
    assert(obligation.obligationState === "inFlight" && obligation.heldBy === null, "only what no member holds may wait");
    obligation.obligationState = "queued";
    obligation.ledger.counts.inFlight -= 1;
    obligation.ledger.counts.queued += 1;
  }

  unqueue(obligation: Obligation): void {
    assert(obligation.obligationState === "queued", "only what waits leaves the queue");
    obligation.obligationState = "inFlight";
    obligation.ledger.counts.queued -= 1;
    obligation.ledger.counts.inFlight += 1;
  }

  hold(obligation: Obligation, member: MemberState): void {
    assert(obligation.obligationState === "inFlight" && obligation.heldBy === null, "one member holds a request at a time");
    obligation.heldBy = member;
    member.load.requests += 1;
  }

  /** It became an upgraded connection. */
  upgrade(obligation: Obligation): void {
    assert(obligation.heldBy !== null && !obligation.upgraded, "a member upgrades what it holds, once");
    obligation.upgraded = true;
    obligation.heldBy.load.upgraded += 1;
  }

  /** The member is done with it; what remains is the gateway's. Returns the member that held it. */
  release(obligation: Obligation): MemberState | null {
    const member = obligation.heldBy;
    if (member === null) return null;
    obligation.heldBy = null;
    take(member.load, "requests");
    if (obligation.upgraded) take(member.load, "upgraded");
    return member;
  }

  retried(obligation: Obligation): void {
    obligation.ledger.counts.retried += 1;
  }

  end(obligation: Obligation, outcome: Outcome, code: string): void {
    const { counts, outcomes } = obligation.ledger;
    assert(obligation.obligationState === "inFlight" || obligation.obligationState === "queued", "an obligation ends once");
    assert(obligation.heldBy === null, "a member lets go before the end");
    if (obligation.obligationState === "queued") counts.queued -= 1;
    else counts.inFlight -= 1;
    obligation.obligationState = "ended";
    counts[outcome] += 1;
    outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
  }

  /** Opens a session, or goes on with one that another replica opened. `at` is monotonic ms. */
  touchSession(id: string, member: MemberState, ttlMs: number, at: number): void {
    const known = this.#sessions.get(id);
    if (known !== undefined) {
      known.until = Math.max(known.until, at + known.ttlMs);
      return;
    }
    this.#sessions.set(id, { id, member, ttlMs, until: at + ttlMs });
    member.load.sessions += 1;
  }

  endSession(id: string): MemberState | null {
    const session = this.#sessions.get(id);
    if (session === undefined) return null;
    this.#sessions.delete(id);
    take(session.member.load, "sessions");
    return session.member;
  }

  /** Closes what was not used for its TTL; returns the members that had some. */
  expireSessions(at: number): readonly MemberState[] {
    const members: MemberState[] = [];
    for (const session of this.#sessions.values()) {
      if (session.until > at) continue;
      this.endSession(session.id);
      members.push(session.member);
    }
    return members;
  }

  /** The sessions of a member that is gone are void. */
  voidSessions(member: MemberState): number {
    let count = 0;
    for (const session of this.#sessions.values()) {
      if (session.member !== member) continue;
      this.endSession(session.id);
      count += 1;
    }
    return count;
  }
}

function take(load: MemberLoad, what: keyof MemberLoad): void {
  assert(load[what] > 0, "a member never holds less than nothing");
  load[what] -= 1;
}
