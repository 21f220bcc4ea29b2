/** `relevo store migrate, export, import`: on the store itself, while no controller runs on a file. */
import { createReadStream, createWriteStream, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import { once } from "node:events";
import { formatInstant } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/system.ts";
import { MIGRATIONS } from "../../store/migrations/index.ts";
import { SECRET_PREFIX } from "../../store/secrets.ts";
import { isPostgresUrl } from "../../store/store.ts";
import { dump, load } from "../../store/transfer.ts";
import { filling, migrateStore, reading, type TransferTarget } from "../../store/transfer-access.ts";
import { readTransfer, TransferWriter } from "../../store/transfer-format.ts";
import { LEASE_KEY, leaseKeyFileOf } from "./controller-store.ts";

/** Rows between two words about how far it is. */
const PROGRESS_ROWS = 5_000;

export interface TransferOptions extends TransferTarget {
  /** Undefined: standard output, or input. */
  readonly file: string | undefined;
  readonly say: (text: string) => void;
}

export { migrateStore };

/** Returns how many rows were written. The file holds the key of the lease tokens: its owner alone may read it. */
export async function exportStore(options: TransferOptions): Promise<number> {
  const { file } = options;
  const unfinished = file === undefined ? undefined : `${file}.new`;
  const out = unfinished === undefined ? process.stdout : createWriteStream(unfinished, { mode: 0o600, flush: true });
  try {
    const rows = await reading(options, async (access) => {
      const writer = new TransferWriter();
      await write(out, writer.head({ schema: MIGRATIONS.length, kind: access.kind, at: formatInstant(systemClock.now()) }));
      for await (const { table, row } of dump(access)) {
        await write(out, writer.row(table, row));
        if (writer.rows % PROGRESS_ROWS === 0) options.say(`${writer.rows} rows written\n`);
      }
      const key = leaseKeyBeside(options.store);
      if (key !== undefined) await write(out, writer.row("meta", { name: `${SECRET_PREFIX}${LEASE_KEY}`, value: key }));
      await write(out, writer.end());
      return writer.rows;
    });
    if (file !== undefined && unfinished !== undefined) {
      await ended(out);
      renameSync(unfinished, file);
    }
    return rows;
  } catch (error) {
    if (unfinished !== undefined) rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Returns how many rows there were. With `isDry` all is done and then undone. */
export async function importStore(options: TransferOptions & { readonly isDry: boolean }): Promise<number> {
  const { file, isDry, store } = options;
  if (file !== undefined && !existsSync(file))
    throw new RelevoError("import_missing", `there is no file ${file}`, { todo: "name the file that relevo store export wrote" });
  let told = 0;
  const progress = (rows: number): void => {
    if (rows - told < PROGRESS_ROWS) return;
    told = rows;
    options.say(`${rows} rows read\n`);
  };
  const { rows, secrets } = await filling(options, isDry, async (access) => {
    const loaded = await load(access, readTransfer(linesOf(file)), progress);
    // A file has its key beside it: it is no row there.
    if (!isPostgresUrl(store)) await access.query(`delete from meta where name = '${SECRET_PREFIX}${LEASE_KEY}'`, []);
    return loaded;
  });
  const key = secrets.get(LEASE_KEY);
  if (!isDry && key !== undefined && !isPostgresUrl(store)) writeFileSync(leaseKeyFileOf(store), `${key}\n`, { mode: 0o600, flush: true });
  return rows;
}

/** Opened when the first line is asked for: what is read before somebody listens is lost. */
async function* linesOf(file: string | undefined): AsyncGenerator<string> {
  const input = file === undefined ? process.stdin : createReadStream(file);
  yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
}

function leaseKeyBeside(store: string): string | undefined {
  if (isPostgresUrl(store) || !existsSync(leaseKeyFileOf(store))) return undefined;
  return readFileSync(leaseKeyFileOf(store), "utf8").trim();
}

async function write(out: Writable, text: string): Promise<void> {
  if (!out.write(text)) await once(out, "drain");
}

async function ended(out: Writable): Promise<void> {
  out.end();
  await once(out, "close");
}
