import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { judge, WriterProcess, type Acknowledged } from "../../test/contracts/store-writer-process.ts";
import { openStore } from "./store.ts";

const POOL = "shop/orders";
const INTACT = { lost: [], halfWritten: [] };
/** So few that no checkpoint falls between: the log then holds all commits and its size tells which. */
const WITHOUT_CHECKPOINT = 60;

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-durability-"));
  path = join(folder, "relevo.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function judgeFile(file: string, pool: string, acknowledged: readonly Acknowledged[]): Promise<unknown> {
  const store = await openStore({ path: file });
  try {
    return await judge(store, pool, acknowledged);
  } finally {
    await store.close();
  }
}

test("no acknowledged commit is lost and none is there by half when the process is killed", async () => {
  for (const [round, commits] of [40, 333, 700].entries()) {
    const writer = new WriterProcess(path, `shop/round${round}`, 4);
    await writer.until(commits);
    await writer.kill();
    expect(await judgeFile(path, `shop/round${round}`, writer.acknowledged)).toEqual(INTACT);
  }
});

test("a copy of the file and its log that is taken while it is written holds all that was acknowledged before", async () => {
  const writer = new WriterProcess(path, POOL, 2, WITHOUT_CHECKPOINT);
  const copy = join(folder, "copy.db");
  await writer.until(WITHOUT_CHECKPOINT);
  const acknowledged = [...writer.acknowledged];
  copyFileSync(path, copy);
  copyFileSync(`${path}-wal`, `${copy}-wal`);
  await writer.kill();

  expect(await judgeFile(copy, POOL, acknowledged)).toEqual(INTACT);
});

test("a power loss takes what was not yet synced, in whatever order, and nothing that was acknowledged", async () => {
  const writer = new WriterProcess(path, POOL, 2, WITHOUT_CHECKPOINT);
  await writer.until(2 * WITHOUT_CHECKPOINT);
  await writer.kill();
  const wal = readFileSync(`${path}-wal`);

  for (const at of [0, 1, 17, 44, 80, 118]) {
    const last = writer.acknowledged[at];
    if (last === undefined) throw new Error("the writer acknowledged too little");
    const before = writer.acknowledged.slice(0, at + 1);
    for (const [name, tail] of Object.entries(tornTails(wal.subarray(last.walBytes)))) {
      const copy = join(folder, `${at}-${name}`, "copy.db");
      mkdirSync(join(folder, `${at}-${name}`));
      copyFileSync(path, copy);
      writeFileSync(`${copy}-wal`, Buffer.concat([wal.subarray(0, last.walBytes), tail]));
      expect(await judgeFile(copy, POOL, before), `after commit ${at}, ${name}`).toEqual(INTACT);
    }
  }
});

/** What a disk may keep of writes that were never synced. */
function tornTails(tail: Buffer): Readonly<Record<string, Buffer>> {
  const flipped = Buffer.from(tail);
  if (flipped.length > 100) flipped[100] = (flipped[100] ?? 0) ^ 0xff;
  const holed = Buffer.from(tail).fill(0, 0, Math.min(4096, tail.length));
  return {
    nothing: Buffer.alloc(0),
    "half a page": tail.subarray(0, 2_000),
    "a flipped byte": flipped,
    "a hole": holed,
    zeros: Buffer.alloc(tail.length),
  };
}

test("a second process is refused, by the number of the first, until the first is dead", async () => {
  const writer = new WriterProcess(path, POOL, 1, 1);
  await writer.until(1);

  await expect(openStore({ path })).rejects.toMatchObject({ name: "RelevoError", code: "store_in_use", found: `pid ${writer.pid}` });
  await writer.kill();

  const store = await openStore({ path });
  expect(await store.listPools()).toEqual([POOL]);
  await expect(openStore({ path })).rejects.toMatchObject({ code: "store_in_use", found: `pid ${process.pid}` });
  await store.close();
  expect(existsSync(`${path}.pid`)).toBe(false);
});
