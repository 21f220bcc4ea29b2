/**
 * A whole store as lines of JSON (docs/store.md): a head, a row per line in the order in which they can be filled in, an end with their number and the SHA-256 of
 * all bytes before it. A file without its end, or with another byte in it, is never taken.
 */
import { createHash, type Hash } from "node:crypto";
import { RelevoError } from "../kernel/errors.ts";
import type { TableName } from "./columns.ts";

export const FORMAT = "relevo-store/1";
/** A notice has 64 KiB, a blueprint may have a megabyte; what is longer is no line of ours. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const END_OF_LINE = 0x0a;

export type TransferRow = Readonly<Record<string, string | number | null>>;

export interface TransferHead {
  readonly format: typeof FORMAT;
  /** The number of the newest migration of the store that was written out. */
  readonly schema: number;
  readonly kind: "sqlite" | "postgresql";
  /** RFC 3339. */
  readonly at: string;
}

export interface RowLine {
  readonly table: TableName;
  readonly row: TransferRow;
}

/** Makes the lines, each with its end of line. */
export class TransferWriter {
  readonly #hash: Hash = createHash("sha256");
  #rows = 0;

  head(head: Omit<TransferHead, "format">): string {
    return this.#line({ format: FORMAT, ...head });
  }

  row(table: TableName, row: TransferRow): string {
    this.#rows += 1;
    return this.#line({ table, row });
  }

  end(): string {
    return `${JSON.stringify({ end: true, rows: this.#rows, sha256: this.#hash.digest("hex") })}\n`;
  }

  get rows(): number {
    return this.#rows;
  }

  #line(value: unknown): string {
    const line = `${JSON.stringify(value)}\n`;
    this.#hash.update(line);
    return line;
  }
}

/**
 * Ended by a line feed and by nothing else: JSON keeps U+2028 and U+2029 as they are, which other readers of lines take for ends too. Error: `import_invalid` for a
 * line that is longer than any of ours.
 */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let number = 1;
  let begun: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(END_OF_LINE); end >= 0; end = chunk.indexOf(END_OF_LINE, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)]).toString("utf8");
      begun = [];
      bytes = 0;
      number += 1;
      from = end + 1;
    }
    begun.push(Buffer.from(chunk.subarray(from)));
    bytes += chunk.length - from;
    if (bytes > MAX_LINE_BYTES) throw invalid("a line is too long", number);
  }
  if (bytes > 0) yield Buffer.concat(begun).toString("utf8");
}

/** Yields the head, then the rows; throws `import_invalid` at the latest at the end. */
export async function* readTransfer(lines: AsyncIterable<string>): AsyncGenerator<TransferHead | RowLine> {
  const hash = createHash("sha256");
  let number = 0;
  let rows = 0;
  let isOver = false;
  for await (const line of lines) {
    number += 1;
    if (isOver) throw invalid("there is a line after its end", number);
    const value = parse(line, number);
    if (number === 1) {
      yield headOf(value);
    } else if (value["end"] === true) {
      requireWhole(value, rows, hash.copy().digest("hex"), number);
      isOver = true;
      continue;
    } else {
      rows += 1;
      yield rowOf(value, number);
    }
    hash.update(`${line}\n`);
  }
  if (!isOver) throw invalid("its end is missing", number);
}

function parse(line: string, number: number): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // Said below.
  }
  throw invalid("a line is no JSON object", number);
}

function headOf(value: Readonly<Record<string, unknown>>): TransferHead {
  const { format, schema, kind, at } = value;
  if (format !== FORMAT || typeof schema !== "number" || typeof at !== "string" || (kind !== "sqlite" && kind !== "postgresql"))
    throw invalid("it does not begin as an export", 1, format, FORMAT);
  return { format, schema, kind, at };
}

function rowOf(value: Readonly<Record<string, unknown>>, number: number): RowLine {
  const { table, row } = value;
  if (typeof table !== "string" || typeof row !== "object" || row === null) throw invalid("a line is no row", number);
  for (const [name, cell] of Object.entries(row))
    if (cell !== null && typeof cell !== "string" && !Number.isSafeInteger(cell)) throw invalid(`${name} is no value of a store`, number);
  return { table: table as TableName, row: row as TransferRow };
}

function requireWhole(end: Readonly<Record<string, unknown>>, rows: number, sha256: string, number: number): void {
  if (end["rows"] !== rows) throw invalid("rows are missing", number, rows, String(end["rows"]));
  if (end["sha256"] !== sha256) throw invalid("its checksum is another", number, sha256, String(end["sha256"]));
}

export function invalid(why: string, line: number, found?: unknown, allowed?: string): RelevoError {
  return new RelevoError("import_invalid", `the export cannot be taken: ${why} (line ${line})`, {
    found,
    ...(allowed === undefined ? {} : { allowed }),
    todo: "export again; nothing was changed",
  });
}
