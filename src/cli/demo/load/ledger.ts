/**
 * The demo's ledger: what was acknowledged, outside everything that can be killed in an act. One append-only file; an answer goes out only after fsync.
 *
 * 1. Writes that arrive while an fsync runs share the next one (group commit).
 * 2. The first write of an id stands. The same execution again changes nothing; another execution of an id that may run only once is counted as `doubled`.
 * 3. A file that ends in half a line (the machine died) is cut back to its last whole line: that write was never acknowledged.
 */
import { type FileHandle, open } from "node:fs/promises";
import { RelevoError } from "../../../kernel/errors.ts";

/** About 100 bytes of memory each. */
export const MAX_LEDGER_IDS = 5_000_000;
export const MAX_PENDING_WRITES = 100_000;
/** Of the doubled ids, how many are named; all are counted. */
export const MAX_NAMED_DOUBLES = 1_000;

export interface LedgerEntry {
  readonly id: string;
  readonly kind: string;
  /** One run of the work: a repeated write of the same run is no second run. */
  readonly execution: string;
  /** A second execution is a fault. */
  readonly once: boolean;
}

export interface LedgerCounts {
  readonly ids: number;
  /** Second executions of ids that allow it. */
  readonly repeated: number;
  /** Second executions of ids that do not. */
  readonly doubled: number;
  readonly doubledIds: readonly string[];
  readonly syncs: number;
}

interface PendingWrite {
  readonly line: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Ledger {
  readonly #file: FileHandle;
  readonly #executions = new Map<string, string>();
  #pending: PendingWrite[] = [];
  #flushing: Promise<void> | null = null;
  #failed: RelevoError | null = null;
  #repeated = 0;
  #doubled = 0;
  readonly #doubledIds: string[] = [];
  #syncs = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Opens or makes the file and reads what it holds. */
  static async open(path: string): Promise<Ledger> {
    const file = await open(path, "a+");
    const ledger = new Ledger(file);
    const text = await file.readFile("utf8");
    const whole = text.lastIndexOf("\n") + 1;
    if (whole < text.length) await file.truncate(Buffer.byteLength(text.slice(0, whole)));
    for (const line of text.slice(0, whole).split("\n")) if (line !== "") ledger.#note(parseEntry(JSON.parse(line)));
    return ledger;
  }

  /** Resolves once the entry is on disk. Errors: `ledger_full`, `ledger_failed`. */
  append(entry: LedgerEntry): Promise<void> {
    if (this.#failed !== null) return Promise.reject(this.#failed);
    if (this.#pending.length >= MAX_PENDING_WRITES || this.#executions.size >= MAX_LEDGER_IDS)
      return Promise.reject(
        new RelevoError("ledger_full", "The ledger takes no more.", { found: this.#executions.size, allowed: `${MAX_LEDGER_IDS} ids` }),
      );
    return new Promise((resolve, reject) => {
      const noted = (): void => {
        this.#note(entry);
        resolve();
      };
      this.#pending.push({ line: `${JSON.stringify(entry)}\n`, resolve: noted, reject });
      this.#flushing ??= this.#flush();
    });
  }

  has(id: string): boolean {
    return this.#executions.has(id);
  }

  counts(): LedgerCounts {
    return {
      ids: this.#executions.size,
      repeated: this.#repeated,
      doubled: this.#doubled,
      doubledIds: this.#doubledIds,
      syncs: this.#syncs,
    };
  }

  async close(): Promise<void> {
    await this.#flushing;
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      try {
        await this.#file.appendFile(batch.map((write) => write.line).join(""));
        await this.#file.datasync();
        this.#syncs++;
        for (const write of batch) write.resolve();
      } catch (cause) {
        // Whether the disk has it is not known: nothing more is acknowledged, rather than something that is not there.
        const failure = new RelevoError("ledger_failed", "The ledger could not be written.", { cause });
        this.#failed = failure;
        for (const write of [...batch, ...this.#pending.splice(0)]) write.reject(failure);
      }
    }
    this.#flushing = null;
  }

  #note(entry: LedgerEntry): void {
    const first = this.#executions.get(entry.id);
    if (first === undefined) {
      this.#executions.set(entry.id, entry.execution);
      return;
    }
    if (first === entry.execution) return;
    if (!entry.once) {
      this.#repeated++;
      return;
    }
    this.#doubled++;
    if (this.#doubledIds.length < MAX_NAMED_DOUBLES) this.#doubledIds.push(entry.id);
  }
}

/** Errors: `ledger_entry_invalid`. */
export function parseEntry(value: unknown): LedgerEntry {
  if (typeof value === "object" && value !== null) {
    const { id, kind, execution, once } = value as Record<string, unknown>;
    if (typeof id === "string" && typeof kind === "string" && typeof execution === "string" && typeof once === "boolean")
      return { id, kind, execution, once };
  }
  throw new RelevoError("ledger_entry_invalid", "An entry needs the texts id, kind and execution, and once as true or false.", {
    found: value,
  });
}
