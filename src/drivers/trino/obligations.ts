/**
 * What a cluster has accepted and not finished, as its engine says.
 *
 * 1. Queries are looked at before transactions: what begins one is a query until it is open, and what goes on in one keeps it open.
 * 2. The list of queries shows only what our user may see; the gauges count all. What they count beyond the list is somebody's work too.
 * 3. Transactions cost a statement, so they are looked at only once no query is left: until then the number says enough.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Obligations } from "../../model/protocol.ts";
import { bootIdOf } from "../../model/trino.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { authorityOf } from "../faults.ts";
import type { InstanceTarget } from "../port.ts";
import { type Engine, OWN_SOURCE } from "./engine.ts";
import { QUEUED_QUERIES, RUNNING_QUERIES } from "../../model/trino.ts";

/** A drain asks four times a second; so old an answer may be. */
const REMEMBERED_MS = 1_000;
/** Whoever asks has its health to look at as well; a look that lasts longer goes on, and what it gives is there for the next one who asks. */
export const PATIENCE_MS = 2_000;
const REMEMBERED_MAX = 1_000;
/** So many are counted, not listed. */
const LISTED_MAX = 200;

interface Look {
  /** Null: it is not over yet. */
  readonly endedAt: number | null;
  readonly obligations: Promise<Obligations>;
}

export class ObligationReader {
  readonly #clock: Clock;
  /** By address and boot id. */
  readonly #looks = new Map<string, Look>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Errors: `boot_id_mismatch` when another coordinator answers, `instance_timeout` (retryable), and those of the engine. */
  read(engine: Engine, target: InstanceTarget): Promise<Obligations> {
    return inTime(this.#look(engine, target), target, this.#clock);
  }

  #look(engine: Engine, target: InstanceTarget): Promise<Obligations> {
    const key = `${authorityOf(target)} ${target.bootId}`;
    const known = this.#looks.get(key);
    if (known !== undefined && (known.endedAt === null || this.#clock.monotonic() - known.endedAt < REMEMBERED_MS))
      return known.obligations;
    if (this.#looks.size >= REMEMBERED_MAX) this.#looks.clear();
    const look: Look = { endedAt: null, obligations: readObligations(engine, target) };
    this.#looks.set(key, look);
    const isMine = (): boolean => this.#looks.get(key) === look;
    // What failed is asked anew.
    look.obligations.then(
      () => isMine() && this.#looks.set(key, { ...look, endedAt: this.#clock.monotonic() }),
      () => isMine() && this.#looks.delete(key),
    );
    return look.obligations;
  }
}

function inTime(obligations: Promise<Obligations>, target: InstanceTarget, clock: Clock): Promise<Obligations> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(PATIENCE_MS, () =>
      reject(
        new RelevoError("instance_timeout", `Trino at ${authorityOf(target)} did not say within ${PATIENCE_MS} ms what is unfinished.`, {
          class: "retryable",
        }),
      ),
    );
    obligations.then(resolve, reject).finally(() => timer.cancel());
  });
}

async function readObligations(engine: Engine, target: InstanceTarget): Promise<Obligations> {
  const { nodeId, coordinatorId, version } = await engine.info();
  const bootId = bootIdOf(nodeId, coordinatorId ?? "");
  if (target.bootId !== null && bootId !== target.bootId)
    throw new RelevoError("boot_id_mismatch", `Another coordinator answers at ${authorityOf(target)}.`, {
      class: "conflict",
      found: bootId,
      allowed: target.bootId,
    });
  const requests = await unfinishedQueries(engine, version, target.trino?.user);
  const transactions = requests > 0 ? 0 : (await engine.transactions()).filter(({ isAutoCommit }) => !isAutoCommit).length;
  return { bootId, requests, upgraded: 0, transactions };
}

async function unfinishedQueries(engine: Engine, version: string, user: string | undefined): Promise<number> {
  const gauges = await engine.gauges([QUEUED_QUERIES, RUNNING_QUERIES]);
  const counted = (gauges.get(QUEUED_QUERIES) ?? 0) + (gauges.get(RUNNING_QUERIES) ?? 0);
  if (counted > LISTED_MAX) return counted;
  const listed = await engine.unfinished(version);
  const own = listed.filter((query) => query.source === OWN_SOURCE && query.user === user).length;
  return Math.max(listed.length - own, counted - own, 0);
}
