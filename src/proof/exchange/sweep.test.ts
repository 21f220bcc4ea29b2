import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type KnownQueries, orphans, sweepExchange } from "./sweep.ts";

const OLD = "20261201_061500_00001_aaaaa";
const LIVE = "20261201_061600_00002_bbbbb";
const ENDED = "20261201_061600_00003_bbbbb";
const folderOf = (query: string) => `1f.${query}.external-exchange-1.0`;
const quiet = (name: string, quietForMs = 60_000) => ({ name, quietForMs });
const KNOWN: KnownQueries = { answered: new Map([["bbbbb", new Set([LIVE])]]), silent: new Set() };

let location = "";
afterEach(async () => {
  if (location !== "") await rm(location, { recursive: true });
  location = "";
});

test("only folders go whose query no coordinator knows, that nobody writes to, and that are the exchange's (T13)", () => {
  const folders = [quiet(folderOf(OLD)), quiet(folderOf(LIVE)), quiet(folderOf(ENDED)), quiet("lost+found"), quiet(`x.${OLD}.notes`)];

  expect(orphans(folders, KNOWN, 30_000)).toEqual([folderOf(OLD), folderOf(ENDED)]);
  expect(orphans([quiet(folderOf(OLD), 29_999)], KNOWN, 30_000)).toEqual([]);
});

test("a coordinator that gave no answer keeps what is its own; where nobody knows which there are, all is kept (T13)", () => {
  const folders = [quiet(folderOf(OLD)), quiet(folderOf(ENDED))];

  expect(orphans(folders, { ...KNOWN, silent: new Set(["aaaaa"]) }, 0)).toEqual([folderOf(ENDED)]);
  expect(orphans(folders, { ...KNOWN, silent: "all" }, 0)).toEqual([]);
});

test("the sweep removes the orphans with their files and names them; others stay (T13)", async () => {
  location = await mkdtemp(join(tmpdir(), "relevo-exchange-"));
  for (const query of [OLD, LIVE]) {
    await mkdir(join(location, folderOf(query), "a/b"), { recursive: true });
    await writeFile(join(location, folderOf(query), "a/b/0_0.data"), "rows");
  }
  const later = Date.now() + 60_000;

  expect(await sweepExchange(location, { known: KNOWN, now: () => later, quietMs: 90_000 })).toEqual([]);
  expect(await sweepExchange(location, { known: KNOWN, now: () => later, quietMs: 30_000 })).toEqual([folderOf(OLD)]);
  expect(await readdir(location)).toEqual([folderOf(LIVE)]);
});
