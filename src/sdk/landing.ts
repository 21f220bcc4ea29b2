/**
 * Where results land: a landing compares. It keeps the highest epoch that it has seen of each workload, and takes nothing older (I1, I2). This is where
 * safety lies: a writer that stood still between looking at its lease and writing is stopped here and nowhere else.
 *
 * The comparison and the write must be one atomic step, so the storage is asked for a transaction. A database row can be that storage; docs/fencing.md has
 * it in SQL.
 */
import { compareEpochs, type Epoch, EPOCH_PATTERN } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";

/** Whose result it is, and under which epoch it was made; travels with the result to its landing. */
export interface Stamp {
  /** `namespace/name#ordinal`. */
  readonly workload: string;
  /** `era.counter`. */
  readonly epoch: string;
}

/** The row of one workload, within a transaction. */
export interface EpochRow {
  /** The highest accepted so far; null: none yet. */
  readonly highest: string | null;
  raise(epoch: string): Promise<void> | void;
}

/** `Tx`: what the write is given to be part of the transaction. */
export interface EpochStorage<Tx> {
  /** Calls `use` in a transaction that no other of this workload overlaps; when `use` fails nothing of it stays. */
  transaction<T>(workload: string, use: (row: EpochRow, tx: Tx) => Promise<T> | T): Promise<T>;
}

export interface Landing<Tx> {
  /**
   * Announces an epoch before anything is written under it: from here on nothing older lands. A writer that has just got its lease does this first
   * (`onLease`), else an older result could land until its own first one does. Error: `stale_writer`.
   */
  open(stamp: Stamp): Promise<void>;
  /** Performs `write` if the stamp is not stale, in the same transaction. Error: `stale_writer`; nothing was written then. */
  land<T>(stamp: Stamp, write: (tx: Tx) => Promise<T> | T): Promise<T>;
}

export function createLanding<Tx>(storage: EpochStorage<Tx>): Landing<Tx> {
  const land = <T>({ workload, epoch }: Stamp, write: (tx: Tx) => Promise<T> | T): Promise<T> =>
    storage.transaction(workload, async (row, tx) => {
      if (!isEpoch(epoch)) throw staleWriter(workload, epoch, row.highest);
      const { highest } = row;
      // What cannot be read is no reason to take anything.
      if (highest !== null && !isEpoch(highest))
        throw new RelevoError("epoch_unreadable", "The epoch that the landing keeps cannot be read.", { found: highest });
      if (highest !== null && compareEpochs(epoch, highest) < 0) throw staleWriter(workload, epoch, highest);
      if (highest === null || compareEpochs(epoch, highest) > 0) await row.raise(epoch);
      return write(tx);
    });
  return { land, open: (stamp) => land(stamp, () => undefined) };
}

/** Keeps epochs in this process: for tests, and for a landing whose results live no longer than it does. */
export function memoryEpochs(): EpochStorage<undefined> {
  const highest = new Map<string, string>();
  const last = new Map<string, Promise<unknown>>();
  return {
    transaction(workload, use) {
      const before = last.get(workload) ?? Promise.resolve();
      const turn = before.then(async () => {
        let raised = highest.get(workload) ?? null;
        const row: EpochRow = {
          highest: raised,
          raise: (epoch) => {
            raised = epoch;
          },
        };
        const result = await use(row, undefined);
        if (raised !== null) highest.set(workload, raised);
        return result;
      });
      const settled = turn.then(
        () => undefined,
        () => undefined, // the caller hears of it; the next one only waits
      );
      last.set(workload, settled);
      return turn;
    },
  };
}

function isEpoch(text: string): text is Epoch {
  return EPOCH_PATTERN.test(text);
}

function staleWriter(workload: string, epoch: string, highest: string | null): RelevoError {
  return new RelevoError("stale_writer", `There is a newer writer of ${workload}: the result was not taken.`, {
    class: "conflict",
    found: epoch,
    allowed: highest === null ? "an epoch, era.counter" : `${highest} or newer`,
    todo: "Stop: another instance holds the lease of this workload.",
  });
}
