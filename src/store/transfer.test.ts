import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { seed } from "../../test/interleavings/calls.ts";
import { picture, POOL } from "../../test/contracts/store-fixtures.ts";
import { COLUMNS, TABLE_NAMES } from "./columns.ts";
import { openSqliteFile } from "./sqlite-file.ts";
import { openStore } from "./store.ts";
import { dump, load } from "./transfer.ts";
import { filling, migrateStore, reading } from "./transfer-access.ts";
import { linesIn, readTransfer, TransferWriter } from "./transfer-format.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-transfer-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = "2030-01-01T12:00:00Z";
const from = () => join(folder, "from.db");
const to = () => join(folder, "to.db");

async function written(store: string): Promise<string[]> {
  return reading({ store }, async (access) => {
    const writer = new TransferWriter();
    const lines = [writer.head({ schema: await access.schema(), kind: access.kind, at })];
    for await (const { table, row } of dump(access)) lines.push(writer.row(table, row));
    return [...lines, writer.end()].map((line) => line.slice(0, -1));
  });
}

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

const take = (lines: readonly string[], isDry = false) =>
  filling({ store: to() }, isDry, (access) => load(access, readTransfer(each(lines)), () => {}));

async function seeded(): Promise<string[]> {
  const store = await openStore(from());
  await seed(store);
  await store.recover({ above: 2, at: 0, why: "test", by: "me" });
  await store.close();
  return written(from());
}

async function pictureOf(path: string): Promise<unknown> {
  const store = await openStore(path);
  try {
    return [
      await picture(store),
      await picture(store, "shop/other"),
      await store.readEra(),
      await store.listNotices(10),
      await store.listGateways(),
    ];
  } finally {
    await store.close();
  }
}

test("every table is moved with all of its columns", () => {
  const { database, close } = openSqliteFile({ path: ":memory:" });
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
  expect(tables.map(({ name }) => String(name)).toSorted()).toEqual(TABLE_NAMES.toSorted());
  for (const table of TABLE_NAMES) {
    const columns = database.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
    expect(columns.map(({ name }) => String(name)).toSorted()).toEqual(COLUMNS[table].columns.toSorted());
  }
  close();
});

test("an export fills an empty store with the same, era, epochs, tombstones and steps too", async () => {
  const lines = await seeded();
  const before = await pictureOf(from());
  expect(await take(lines)).toMatchObject({ rows: lines.length - 2 });
  expect(await pictureOf(to())).toEqual(before);
  expect(await written(to())).toEqual(lines);

  const store = await openStore(to());
  expect((await store.claim(POOL, "next", 0)).epoch).toBe("3.3");
  await store.close();
});

test("a store that is not empty is not filled, and stays as it is", async () => {
  const lines = await seeded();
  const store = await openStore(to());
  await store.registerGateway("g-9", 0);
  await store.close();
  await expect(take(lines)).rejects.toMatchObject({ code: "store_not_empty", found: "gateways: g-9" });
  const again = await openStore(to());
  expect(await again.listPools()).toEqual([]);
  await again.close();
});

test("a dry run finds what is wrong and leaves nothing", async () => {
  const lines = await seeded();
  expect(await take(lines, true)).toMatchObject({ rows: lines.length - 2 });
  await take(lines);
});

test("an export that was cut, changed or made by another program is refused as a whole", async () => {
  const lines = await seeded();
  const changed = lines.map((line) => line.replace('"owner":"controller-b"', '"owner":"controller-c"'));
  for (const [wrong, why] of [
    [lines.slice(0, -1), "its end is missing"],
    [[], "its end is missing"],
    [lines.toSpliced(5, 1), "does not fit"],
    [lines.toSpliced(-3, 1), "rows are missing"],
    [changed, "its checksum is another"],
    [[...lines, "{}"], "after its end"],
    [lines.with(0, '{"format":"other/1"}'), "does not begin as an export"],
    [lines.with(3, "x"), "no JSON object"],
    [lines.with(3, '{"table":"users","row":{"a":1}}'), "no table users"],
    [lines.with(3, '{"table":"constructor","row":{"a":1}}'), "no table constructor"],
    [lines.with(3, '{"table":"pools","row":{}}'), "a row of pools is empty"],
    [lines.with(3, '{"table":"pools","row":{"pool":{"a":1}}}'), "pool is no value"],
    [lines.with(3, '{"table":"pools","row":{"pool; drop":"x"}}'), "has no pool; drop"],
  ] as const)
    await expect(take(wrong), why).rejects.toMatchObject({ code: "import_invalid", message: expect.stringContaining(why) });
  await expect(take(lines.with(0, lines[0]?.replace(/"schema":\d+/, '"schema":99') ?? ""))).rejects.toMatchObject({
    code: "store_schema_differs",
    found: 99,
  });
  const store = await openStore(to());
  expect([await store.listPools(), await store.readEra(), await store.listGateways()]).toEqual([[], { era: 0, recovered: null }, []]);
  await store.close();
});

async function read(chunks: readonly string[]): Promise<string[]> {
  async function* bytes() {
    for (const chunk of chunks) yield Buffer.from(chunk, "latin1");
  }
  const lines = [];
  for await (const line of linesIn(bytes())) lines.push(line);
  return lines;
}

test("lines are ended by a line feed alone, wherever the bytes are parted: what a stranger put into a notice ends none", async () => {
  const text = '{"body":"a\u2028b\u2029c\r\u0085ü"}\n{}\nlast';
  const bytes = Buffer.from(text).toString("latin1");
  const whole = ['{"body":"a\u2028b\u2029c\r\u0085ü"}', "{}", "last"];
  expect(await read([bytes])).toEqual(whole);
  expect(await read(Array.from(bytes))).toEqual(whole);
  expect(await read([])).toEqual([]);
});

test("a line that never ends is refused before it fills the memory", async () => {
  const megabyte = "x".repeat(1024 * 1024);
  await expect(read(["{}\n", ...Array.from({ length: 17 }, () => megabyte)])).rejects.toMatchObject({
    code: "import_invalid",
    message: expect.stringContaining("a line is too long (line 2)"),
  });
});

test("what a migration would do is said without doing it", async () => {
  const newest = (await migrateStore({ store: to() }, false)).to;
  expect(newest).toBeGreaterThan(2);
  expect(await migrateStore({ store: to() }, true)).toEqual({ from: newest, to: newest });
  expect(await migrateStore({ store: from() }, true)).toEqual({ from: 0, to: newest });
  await expect(reading({ store: from() }, async () => {})).rejects.toMatchObject({ code: "store_missing" });
});
