/**
 * A pool at rest: its last pass found all as it should be, and since then nothing called and no row is another one. A pass would say the same again, so it is
 * left out; what is read of the store is judged all the same, and after a while a pass is made whatever happened.
 *
 * Whatever a plan depends on calls (a change of an object, of what a gateway replica has applied or holds, of a check, a notice, a freeze), is in the rows, or is
 * a time that the plan names. What one pool is told because of another is so only while that one is not at rest.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Reason } from "../model/reasons.ts";
import type { PoolRows } from "../store/port.ts";
import type { Pass } from "./pass.ts";
import type { PoolEntry } from "./pool-informer.ts";

/** What nobody told is seen after so long. */
export const REST_MS = 30_000;
/** Of a pool whose size follows its demand: what would change its size calls, and what is told of its demand is not to be old. */
export const REST_OF_SCALED_MS = 15_000;

const WELL: ReadonlySet<Reason["code"]> = new Set(["serving", "standby_ready", "nothing_to_do", "scale_paused"]);

interface Looked {
  readonly entry: PoolEntry;
  readonly rows: PoolRows;
  readonly pass: Pass;
  /** Somebody has called since. */
  isOver: boolean;
}

export class Rest {
  /** By pool, of the last pass that was acted upon. */
  readonly #looked = new Map<string, Looked>();

  /** After the pass: what it was made from. */
  note(entry: PoolEntry, rows: PoolRows, pass: Pass): void {
    this.#looked.set(rows.pool, { entry, rows, pass, isOver: false });
  }

  /** Somebody calls, or the last look came to no end. */
  disturb(pool: string): void {
    const last = this.#looked.get(pool);
    if (last !== undefined) last.isOver = true;
  }

  forget(pool: string): void {
    this.#looked.delete(pool);
  }

  /** Until when nothing has to be planned; null: now. `entry` and `rows` are as they are now. */
  until(entry: PoolEntry, rows: PoolRows, now: Instant): Instant | null {
    const last = this.#looked.get(rows.pool);
    if (last === undefined || last.entry !== entry || !areSame(last.rows, rows)) return null;
    if (last.isOver || !isWell(last.pass)) return null;
    if (!standsAlone(last.pass)) for (const { pass, isOver } of this.#looked.values()) if (isOver || !isWell(pass)) return null;
    const { at, plan, snapshot } = last.pass;
    const until = Math.min(
      plan.nextLookAt ?? Number.POSITIVE_INFINITY,
      at + (snapshot.spec.scale === undefined ? REST_MS : REST_OF_SCALED_MS),
    );
    return now >= at && now < until ? until : null;
  }
}

function isWell({ snapshot, plan }: Pass): boolean {
  const { deleting, rewound, inventory, openSteps } = snapshot;
  if (deleting || rewound !== null || inventory.state !== "complete" || openSteps.length > 0) return false;
  return plan.decisions.length === 0 && plan.holds.every(({ reason }) => WELL.has(reason.code));
}

/**
 * Nothing that another pool does changes what is planned for it: it has no standby that could be asked for. Only those that follow a demand, of which there are
 * many, and always one that moves.
 */
function standsAlone({ snapshot: { spec } }: Pass): boolean {
  return spec.scale !== undefined && spec.standby.count === 0;
}

/** What was not written is given again as it was. */
function areSame(a: PoolRows, b: PoolRows): boolean {
  return (Object.keys(b) as (keyof PoolRows)[]).every((key) => a[key] === b[key]);
}
