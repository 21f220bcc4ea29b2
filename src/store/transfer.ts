/** Reads a whole store out, and fills an empty one: everything, as it is, also era, epochs, tombstones and steps, so that whoever acts goes on. */
import { RelevoError } from "../kernel/errors.ts";
import { COLUMNS, TABLE_NAMES, type TableName } from "./columns.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { SECRET_PREFIX } from "./secrets.ts";
import { invalid, type RowLine, type TransferHead, type TransferRow } from "./transfer-format.ts";

/** One connection, inside one transaction. */
export interface RowAccess {
  readonly kind: "sqlite" | "postgresql";
  /** The number of the newest migration that was applied. */
  schema(): Promise<number>;
  query(sql: string, values: readonly (string | number | null)[]): Promise<readonly TransferRow[]>;
  /** The name of the parameter with this number, from 1. */
  parameter(number: number): string;
  /** Called when all is filled in: what counts `seq` goes on after what is there. */
  finish(): Promise<void>;
}

/** Rows of one page and of one insert. */
const BATCH = 200;
/** What a store has in `meta` of its own, wherever its rows come from. */
const OWN_META = ["schema_least"];

/** In the order in which they can be filled in. Error: `store_schema_differs`. */
export async function* dump(access: RowAccess): AsyncGenerator<RowLine> {
  await requireOwnSchema(access);
  for (const table of TABLE_NAMES)
    for await (const row of rowsOf(access, table)) {
      if (table === "meta" && OWN_META.includes(String(row["name"]))) continue;
      yield { table, row };
    }
}

export interface Loaded {
  readonly rows: number;
  /** By name. */
  readonly secrets: ReadonlyMap<string, string>;
}

/** Fills an empty store. Errors: `store_not_empty`, `store_schema_differs`, `import_invalid`; then the transaction must be rolled back. */
export async function load(
  access: RowAccess,
  lines: AsyncIterable<TransferHead | RowLine>,
  progress: (rows: number) => void,
): Promise<Loaded> {
  await requireOwnSchema(access);
  await requireEmpty(access);
  const secrets = new Map<string, string>();
  let rows = 0;
  let batch: RowLine[] = [];
  const flush = async (): Promise<void> => {
    await insert(access, batch, rows + 2);
    rows += batch.length;
    batch = [];
    progress(rows);
  };
  for await (const line of lines) {
    if ("format" in line) {
      if (line.schema > MIGRATIONS.length) throw differs(line.schema);
      continue;
    }
    if (!TABLE_NAMES.includes(line.table)) throw invalid(`there is no table ${line.table}`, rows + batch.length + 2);
    const [first] = batch;
    if (first !== undefined && (first.table !== line.table || batch.length >= BATCH || !haveSameColumns(first, line))) await flush();
    batch.push(line);
    const name = line.table === "meta" ? String(line.row["name"]) : "";
    if (name.startsWith(SECRET_PREFIX)) secrets.set(name.slice(SECRET_PREFIX.length), String(line.row["value"]));
  }
  if (batch.length > 0) await flush();
  await access.finish();
  return { rows, secrets };
}

async function* rowsOf(access: RowAccess, table: TableName): AsyncGenerator<TransferRow> {
  const { key, columns } = COLUMNS[table] as { key: readonly string[]; columns: readonly string[] };
  const from = `select ${columns.join(", ")} from ${table}`;
  const rest = `order by ${key.join(", ")} limit ${BATCH}`;
  const after = `where (${key.join(", ")}) > (${key.map((_, index) => access.parameter(index + 1)).join(", ")})`;
  let page = await access.query(`${from} ${rest}`, []);
  while (page.length > 0) {
    yield* page;
    const last = page.at(-1) as TransferRow;
    if (page.length < BATCH) return;
    page = await access.query(
      `${from} ${after} ${rest}`,
      key.map((name) => last[name] as string | number),
    );
  }
}

/** `line` is where the batch begins. */
async function insert(access: RowAccess, batch: readonly RowLine[], line: number): Promise<void> {
  const [first] = batch;
  if (first === undefined) return;
  const { key, columns } = COLUMNS[first.table] as { key: readonly string[]; columns: readonly string[] };
  const names = Object.keys(first.row);
  const unknown = names.filter((name) => !columns.includes(name));
  if (unknown.length > 0) throw invalid(`the table ${first.table} has no ${unknown.join(", ")}`, line);
  if (names.length === 0) throw invalid(`a row of ${first.table} is empty`, line);
  let number = 0;
  const rows = batch.map(() => `(${names.map(() => access.parameter(++number)).join(", ")})`);
  // A new store has an era already.
  const orReplaces = first.table === "meta" ? `on conflict (${key.join(", ")}) do update set value = excluded.value` : "";
  try {
    await access.query(
      `insert into ${first.table} (${names.join(", ")}) values ${rows.join(", ")} ${orReplaces}`,
      batch.flatMap(({ row }) => names.map((name) => row[name] ?? null)),
    );
  } catch (error) {
    throw isRefusedRow(error) ? invalid(`a row of ${first.table} does not fit: ${(error as Error).message}`, line) : error;
  }
}

/** SQLITE_CONSTRAINT and SQLITE_MISMATCH; the SQLSTATEs of broken constraints and of values that are none. */
function isRefusedRow(error: unknown): boolean {
  const { errcode, code } = error as { readonly errcode?: unknown; readonly code?: unknown };
  if (typeof errcode === "number") return [19, 20].includes(errcode & 0xff);
  return typeof code === "string" && /^2[23]\w{3}$/.test(code);
}

function haveSameColumns(a: RowLine, b: RowLine): boolean {
  return Object.keys(a.row).join() === Object.keys(b.row).join();
}

async function requireEmpty(access: RowAccess): Promise<void> {
  for (const table of TABLE_NAMES) {
    const found =
      table === "meta"
        ? await access.query(
            `select name from meta where not (name = 'era' and value = '0') and name not in ('${OWN_META.join("', '")}') and name not like '${SECRET_PREFIX}%' limit 1`,
            [],
          )
        : await access.query(`select ${COLUMNS[table].key.join(", ")} from ${table} limit 1`, []);
    if (found.length > 0)
      throw new RelevoError("store_not_empty", "the store that shall be filled is not empty", {
        found: `${table}: ${Object.values(found[0] ?? {}).join("/")}`,
        allowed: "a new one",
        todo: "name another file or another schema; nothing was changed",
      });
  }
}

async function requireOwnSchema(access: RowAccess): Promise<void> {
  const found = await access.schema();
  if (found !== MIGRATIONS.length) throw differs(found);
}

function differs(found: number): RelevoError {
  return new RelevoError("store_schema_differs", "the store's schema is not the one of this version of Relevo", {
    found,
    allowed: String(MIGRATIONS.length),
    todo: found < MIGRATIONS.length ? "run relevo store migrate first" : "use the version that wrote it",
  });
}
