/** `relevo store migrate, export, import`: on the store itself, while no controller runs on a file. */
import { createReadStream, createWriteStream, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { formatInstant } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/system.ts";
import { MIGRATIONS } from "../../store/migrations/index.ts";
import { SECRET_PREFIX } from "../../store/secrets.ts";
import { isPostgresUrl } from "../../store/store.ts";
import { dump, load, type RowAccess } from "../../store/transfer.ts";
import { filling, migrateStore, reading, type TransferTarget } from "../../store/transfer-access.ts";
import { linesIn, readTransfer, TransferWriter } from "../../store/transfer-format.ts";
import { LEASE_KEY, leaseKeyFileOf } from "./controller-store.ts";

/** Rows between two words about how far it is. */
const PROGRESS_ROWS = 5_000;

export interface TransferOptions extends TransferTarget {
  /** Undefined: standard output, or input. */
  readonly file: string | undefined;
  readonly say: (text: string) => void;
}

export { migrateStore };

/** Returns how many rows were written. The file holds the key of the lease tokens: its owner alone may read it. Errors: `export_unwritable`, those of the store. */
export async function exportStore(options: TransferOptions): Promise<number> {
  const { file } = options;
  if (file === undefined) return reading(options, (access) => writeOut(access, options, process.stdout));
  const unfinished = `${file}.new`;
  rmSync(unfinished, { force: true }); // one that somebody else made keeps its mode: others could read it
  try {
    const rows = await reading(options, (access) =>
      writeOut(access, options, createWriteStream(unfinished, { mode: 0o600, flags: "wx", flush: true })),
    );
    renameSync(unfinished, file);
    return rows;
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

async function writeOut(access: RowAccess, options: TransferOptions, out: Writable): Promise<number> {
  const writer = new TransferWriter();
  let ofStore: { readonly error: unknown } | undefined;
  async function* lines(): AsyncGenerator<string> {
    try {
      yield* linesOut(access, options, writer);
    } catch (error) {
      ofStore = { error };
      throw error;
    }
  }
  try {
    await pipeline(lines, out, { end: out !== process.stdout });
  } catch (cause) {
    if (ofStore !== undefined) throw ofStore.error;
    throw new RelevoError(
      "export_unwritable",
      `the export cannot be written to ${options.file ?? "the output"}: ${(cause as Error).message}`,
      {
        todo: "free space, or name another file; nothing of it is left",
        cause,
      },
    );
  }
  return writer.rows;
}

async function* linesOut(access: RowAccess, { store, say }: TransferOptions, writer: TransferWriter): AsyncGenerator<string> {
  yield writer.head({ schema: MIGRATIONS.length, kind: access.kind, at: formatInstant(systemClock.now()) });
  for await (const { table, row } of dump(access)) {
    yield writer.row(table, row);
    if (writer.rows % PROGRESS_ROWS === 0) say(`${writer.rows} rows written\n`);
  }
  const key = leaseKeyBeside(store);
  if (key !== undefined) yield writer.row("meta", { name: `${SECRET_PREFIX}${LEASE_KEY}`, value: key });
  yield writer.end();
}

/** Returns how many rows there were. With `isDry` all is done and then undone. */
export async function importStore(options: TransferOptions & { readonly isDry: boolean }): Promise<number> {
  const { file, isDry, store } = options;
  if (file !== undefined && !existsSync(file))
    throw new RelevoError("import_missing", `there is no file ${file}`, { todo: "name the file that relevo store export wrote" });
  const isNew = !isPostgresUrl(store) && !existsSync(store);
  const hadKey = existsSync(leaseKeyFileOf(store));
  let isKept = false;
  let told = 0;
  const progress = (rows: number): void => {
    if (rows - told < PROGRESS_ROWS) return;
    told = rows;
    options.say(`${rows} rows read\n`);
  };
  try {
    const rows = await fill();
    isKept = !isDry;
    return rows;
  } finally {
    if (isNew && !isKept) {
      for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(`${store}${end}`, { force: true });
      if (!hadKey) rmSync(leaseKeyFileOf(store), { force: true });
    }
  }

  async function fill(): Promise<number> {
    const { rows } = await filling(options, isDry, async (access) => {
      const loaded = await load(access, readTransfer(linesOf(file)), progress);
      if (!isPostgresUrl(store)) await putKeyBeside(access, store, isDry ? undefined : loaded.secrets.get(LEASE_KEY));
      return loaded;
    });
    return rows;
  }
}

/** A file has its key beside it: it is no row there. Before the COMMIT: without its key a store that is filled would lose every writer, and is not filled again. */
async function putKeyBeside(access: RowAccess, store: string, key: string | undefined): Promise<void> {
  await access.query(`delete from meta where name = '${SECRET_PREFIX}${LEASE_KEY}'`, []);
  if (key !== undefined) writeFileSync(leaseKeyFileOf(store), `${key}\n`, { mode: 0o600, flush: true });
}

/** Opened when the first line is asked for: what is read before somebody listens is lost. */
async function* linesOf(file: string | undefined): AsyncGenerator<string> {
  try {
    yield* linesIn(file === undefined ? process.stdin : createReadStream(file));
  } catch (cause) {
    if (cause instanceof RelevoError) throw cause;
    throw new RelevoError("import_unreadable", `${file ?? "the input"} cannot be read: ${(cause as Error).message}`, {
      todo: "name a file that may be read; nothing was changed",
      cause,
    });
  }
}

function leaseKeyBeside(store: string): string | undefined {
  if (isPostgresUrl(store) || !existsSync(leaseKeyFileOf(store))) return undefined;
  return readFileSync(leaseKeyFileOf(store), "utf8").trim();
}
