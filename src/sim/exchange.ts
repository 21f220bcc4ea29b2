/** One request at a modelled gateway replica, from its arrival to its end, as the production ledger and waiting room know it. */
import type { Obligation, RouteLedger } from "../gateway/ledger.ts";
import type { MemberState, RouteState } from "../gateway/membership.ts";
import type { Waiter } from "../gateway/queue.ts";
import type { Timer } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Priority } from "../model/membership.ts";

export type RequestOutcome = "completed" | "rejected" | "cut";

/** What a client asks for. */
export interface Ask {
  readonly route: string;
  readonly durationMs: number;
  readonly isIdempotent: boolean;
  /** Once its answer began it can only be cut. */
  readonly streams: boolean;
  readonly done: (outcome: RequestOutcome, instance: string | null) => void;
}

export class Exchange implements Obligation, Waiter {
  readonly ask: Ask;
  readonly ledger: RouteLedger;
  readonly queueRoute: string;
  readonly priority: Priority;
  readonly queueUntil: number;
  readonly #refuse: (exchange: Exchange, why: string) => void;
  obligationState: Obligation["obligationState"] = "new";
  heldBy: MemberState | null = null;
  upgraded = false;
  tried: readonly MemberState[] = [];
  tries = 0;
  timer: Timer | undefined;
  /** Under which the instance answers; null: it says none. */
  epoch: Epoch | null = null;
  finish: (() => void) | undefined;

  constructor(
    ask: Ask,
    ledger: RouteLedger,
    now: number,
    route: RouteState | undefined,
    refuse: (exchange: Exchange, why: string) => void,
  ) {
    this.ask = ask;
    this.ledger = ledger;
    this.queueRoute = ask.route;
    this.priority = route?.policy.priority ?? "standard";
    this.queueUntil = now + (route?.policy.queueWaitMs ?? 0);
    this.#refuse = refuse;
  }

  queueRefused(why: "queue_timeout" | "displaced"): void {
    this.#refuse(this, why);
  }
}
