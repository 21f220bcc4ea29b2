/** What the faults of one group share: the world, the healer, the sender of notices. Each kind of fault has one handler. */
import type { Instant } from "../../kernel/clock.ts";
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import type { Fault, FaultKind } from "../faults.ts";
import type { ScenarioPool } from "../scenario.ts";
import type { World } from "../world.ts";

/** True when it happened; false when it is counted where it takes effect, or does not. */
export type Happened = boolean | Promise<boolean>;

export type Handlers<K extends FaultKind> = {
  readonly [kind in K]: (fault: Extract<Fault, { readonly kind: kind }>, injection: Injection) => Happened;
};

const SENDER_RETRY_MS = 1_000;
const SENDER_TRIES = 30;

export class Injection {
  readonly world: World;
  /** What ends a fault that lasts; each is called once. */
  readonly #healers = new Set<() => void>();
  #notices = 0;
  #poolTurns = 0;
  /** When the last thing that is under way and cannot be called back has happened. */
  quietAt: Instant = 0;

  constructor(world: World) {
    this.world = world;
  }

  /** Ends what still lasts. */
  heal(): void {
    for (const heal of [...this.#healers]) heal();
  }

  /** `end` is called once: after this long, or when the faults stop. */
  until(afterMs: number, end: () => void): void {
    const heal = (): void => {
      if (!this.#healers.delete(heal)) return;
      timer.cancel();
      end();
    };
    const timer = this.world.clock.after(afterMs, heal);
    this.#healers.add(heal);
  }

  /** It goes on by itself until then, whatever is healed. */
  lasts(untilMs: Instant): void {
    this.quietAt = Math.max(this.quietAt, untilMs);
  }

  /** The pools by turns. */
  nextPool(): ScenarioPool {
    const { pools } = this.world.scenario;
    const pool = pools[this.#poolTurns++ % pools.length];
    if (pool === undefined) throw new RelevoError("no_pool", "there is no pool");
    return pool;
  }

  noticeId(): string {
    return `event-${++this.#notices}`;
  }

  /** As AWS does: sends it again until it is taken or refused. */
  post(body: string, tries = SENDER_TRIES): void {
    const { clock, log } = this.world;
    this.world
      .anyController()
      .call((controlPlane) => controlPlane.receiveNotice({ source: "eventbridge", body, headers: {} }))
      .then(
        (receipt) => log.add(`notice taken: ${JSON.stringify(receipt)}`),
        (error: unknown) => {
          log.add(`notice refused: ${error instanceof RelevoError ? error.code : String(error)}`);
          if (isRetryable(error) && tries > 1) clock.after(SENDER_RETRY_MS, () => this.post(body, tries - 1));
          else if (!(error instanceof RelevoError)) this.world.observe({ type: "unhandled", error: String(error) });
        },
      );
  }
}
