/** What is read of a page while it passes: against what a real server answered, and against anything in its order of fields, in any pieces. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { LIMITS } from "../limits.ts";
import { HeadScanner, type PageHead } from "./head-scanner.ts";
import { PageReader } from "./page-reader.ts";

const RECORDED = join(import.meta.dirname, "../../../test/trino/recorded");

interface Recorded {
  readonly url: string;
  readonly method: string;
  readonly status: number;
  readonly text: string;
}

interface AnyPage {
  readonly id: string;
  readonly nextUri?: string;
  readonly data?: unknown;
}

function recordedPages(): readonly string[] {
  return readdirSync(RECORDED)
    .flatMap((name) => JSON.parse(readFileSync(join(RECORDED, name), "utf8")) as readonly Recorded[])
    .filter(
      ({ url, status, method, text }) => url.includes("/v1/statement") && status === 200 && method !== "DELETE" && text.startsWith("{"),
    )
    .map(({ text }) => text);
}

/** As a parser sees it. */
function headOf(text: string): PageHead {
  const { id, nextUri, data } = JSON.parse(text) as AnyPage;
  return { id, hasNext: nextUri !== undefined, data: data === undefined ? "none" : Array.isArray(data) ? "rows" : "encoded" };
}

function piecesOf(bytes: Buffer, sizes: readonly number[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

/** What came out of it, and what it said. */
function read(pieces: readonly Buffer[], isGzip = false, rewritten: (page: Buffer) => Buffer | undefined = () => undefined) {
  const heads: PageHead[] = [];
  const reader = new PageReader({ isGzip, headKnown: (head) => heads.push(head), rewritten });
  const passings = [...pieces.map((piece) => reader.push(piece)), reader.end()];
  const bytes = Buffer.concat(passings.map((passing) => (passing.kind === "nothing" ? Buffer.alloc(0) : passing.bytes)));
  return { heads, bytes, passings };
}

test("each page that a real server answered is read as a parser reads it, packed or not, in whatever pieces", () => {
  const pages = recordedPages();
  expect(pages.length).toBeGreaterThan(20);
  for (const text of pages)
    for (const sizes of [[1], [7, 64], [100_000]])
      for (const isGzip of [false, true]) {
        const bytes = isGzip ? gzipSync(text) : Buffer.from(text);
        const found = read(piecesOf(bytes, sizes), isGzip);
        expect(found.heads).toEqual([headOf(text)]);
        expect(found.bytes.equals(bytes)).toBe(true);
      }
});

const anyPage = fc.record(
  {
    id: fc.string({ maxLength: 40, unit: fc.constantFrom("a", "b", "c", "0", "1", "_") }),
    infoUri: fc.string({ unit: "binary" }),
    partialCancelUri: fc.string({ unit: "binary" }),
    nextUri: fc.string({ unit: "binary" }),
    columns: fc.array(fc.record({ name: fc.string({ unit: "binary" }), nextUri: fc.jsonValue() }), { maxLength: 3 }),
    data: fc.oneof(fc.array(fc.array(fc.jsonValue())), fc.record({ encoding: fc.string(), segments: fc.constant([]) })),
    stats: fc.record({ state: fc.string() }),
    error: fc.jsonValue(),
    warnings: fc.array(fc.jsonValue()),
  },
  { requiredKeys: ["id", "infoUri", "stats"] },
);
const ORDER = ["id", "infoUri", "partialCancelUri", "nextUri", "columns", "data", "stats", "error", "warnings"];

test("any page in the order that Trino writes is read as a parser reads it, and passes unchanged", () => {
  fc.assert(
    fc.property(anyPage, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }), fc.boolean(), (page, sizes, spaced) => {
      const ordered = Object.fromEntries(ORDER.filter((name) => name in page).map((name) => [name, page[name as keyof typeof page]]));
      const text = JSON.stringify(ordered, null, spaced ? 1 : undefined);
      const { heads, bytes } = read(piecesOf(Buffer.from(text), sizes));
      expect(heads).toEqual([headOf(text)]);
      expect(bytes.toString()).toBe(text);
    }),
  );
});

test("of what does not begin as a page nothing is concluded, and it passes unchanged", () => {
  for (const text of ["", "Query not found", "[1]", '{"nextUri":"x","id":"y"}', '{"id":"x', "\u0000", `{"${"k".repeat(100)}":1}`]) {
    const { heads, bytes } = read([Buffer.from(text)]);
    expect(heads).toMatchObject([{ data: "unknown" }]);
    expect(heads[0]?.hasNext).not.toBe(false);
    expect(bytes.toString()).toBe(text);
  }
});

test("what says that it is packed and is not passes unread", () => {
  expect(read([Buffer.from('{"id":"x"}')], true)).toMatchObject({ heads: [{ data: "unknown" }], bytes: Buffer.from('{"id":"x"}') });
});

test("of a long page no more is held back than its head", () => {
  const head = Buffer.from('{"id":"q","infoUri":"i","nextUri":"n","columns":[],"data":');
  const reader = new PageReader({ isGzip: false, headKnown: () => undefined, rewritten: () => undefined });

  expect(reader.push(head)).toEqual({ kind: "nothing" });
  expect(reader.push(Buffer.from("["))).toMatchObject({ kind: "bytes" });
  expect(reader.isOver).toBe(true);
});

test("a head longer than the bound is passed on unread, and the query counts as open by what was seen", () => {
  const scanner = new HeadScanner();
  scanner.push(Buffer.from('{"id":"q","infoUri":"i","nextUri":"n","columns":["'));
  expect(scanner.end()).toEqual({ id: "q", hasNext: true, data: "unknown" });

  const wide = Buffer.from(`{"id":"q","infoUri":"i","nextUri":"n","columns":["${"x".repeat(LIMITS.trinoHeadBytes)}`);
  expect(read([wide]).passings[0]).toMatchObject({ kind: "bytes" });
});

test("a page of segments is held whole and rewritten; one longer than the bound passes unchanged", () => {
  const small = Buffer.from('{"id":"q","infoUri":"i","data":{"segments":[]},"stats":{}}');
  const replaced = Buffer.from("instead");
  expect(read(piecesOf(small, [10]), false, () => replaced).bytes).toEqual(replaced);

  const long = Buffer.from(`{"id":"q","infoUri":"i","data":{"segments":["${"x".repeat(LIMITS.trinoSegmentsBytes)}"]}}`);
  expect(read([long], false, () => replaced).bytes.equals(long)).toBe(true);
});
