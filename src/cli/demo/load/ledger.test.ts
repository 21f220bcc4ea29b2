import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../kernel/system.ts";
import { Ledger, type LedgerEntry } from "./ledger.ts";
import { LedgerReader } from "./ledger-reader.ts";
import { serveLedger } from "./ledger-server.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ledger-"));
  path = join(folder, "ledger");
});
afterEach(() => rm(folder, { recursive: true }));

function entry(id: string, changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return { id, kind: "order", execution: `run of ${id}`, once: false, ...changes };
}

test("an id is in the file before its write is answered, and writes at the same time share an fsync", async () => {
  const ledger = await Ledger.open(path);
  const writes = Array.from({ length: 100 }, (_, index) => ledger.append(entry(`a${index}`)));
  await writes[0];
  expect(await readFile(path, "utf8")).toContain('"a0"');
  await Promise.all(writes);

  expect(ledger.counts()).toMatchObject({ ids: 100, repeated: 0, doubled: 0 });
  expect(ledger.counts().syncs).toBeLessThanOrEqual(2);
  await ledger.close();
});

test("a second execution is counted as doubled where it may not be, as repeated where it may; the same one is neither", async () => {
  const ledger = await Ledger.open(path);
  await ledger.append(entry("charge", { once: true }));
  await ledger.append(entry("charge", { once: true }));
  await ledger.append(entry("charge", { once: true, execution: "another run" }));
  await ledger.append(entry("order"));
  await ledger.append(entry("order", { execution: "another run" }));

  expect(ledger.counts()).toMatchObject({ ids: 2, repeated: 1, doubled: 1, doubledIds: ["charge"] });
  await ledger.close();
});

test("opened again it has what was written, and half a line at the end is cut back", async () => {
  const first = await Ledger.open(path);
  await first.append(entry("a"));
  await first.close();
  await appendFile(path, '{"id":"b","ki');

  const second = await Ledger.open(path);
  await second.append(entry("c"));
  await second.close();
  const third = await Ledger.open(path);

  expect(["a", "b", "c"].map((id) => third.has(id))).toEqual([true, false, true]);
  await third.close();
});

test("over HTTP it tells which ids are missing, and refuses what is no entry", async () => {
  const ledger = await Ledger.open(path);
  const server = await serveLedger(ledger);
  const post = async (where: string, body: string): Promise<number> =>
    (await fetch(`${server.url}${where}`, { method: "POST", body })).status;
  const reader = new LedgerReader(server.url, systemClock);

  expect(await post("/append", JSON.stringify(entry("a", { once: true })))).toBe(200);
  expect(await post("/append", JSON.stringify(entry("a", { once: true, execution: "another" })))).toBe(200);
  expect([await post("/append", "{}"), await post("/append", "{"), await post("/check", '{"ids":[1]}'), await post("/other", "")]).toEqual([
    400, 400, 400, 404,
  ]);
  expect(await reader.findMissing(["a", "z"])).toEqual(new Set(["z"]));
  expect(await reader.doubledIds()).toEqual(["a"]);
  expect([(await fetch(`${server.url}/ids/a`)).status, (await fetch(`${server.url}/ids/z`)).status]).toEqual([200, 404]);

  reader.close();
  await server.close();
  await ledger.close();
  const late = new LedgerReader(server.url, systemClock);
  await expect(late.doubledIds()).rejects.toMatchObject({ code: "ledger_unreachable" });
  late.close();
});
