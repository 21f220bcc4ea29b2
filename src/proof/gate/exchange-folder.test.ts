import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exchangeFolder } from "./exchange-folder.ts";

const QUERY = "20261201_054100_00007_ab12c";
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-exchange-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("lists the files of one query alone (T13)", async () => {
  const stage = join(folder, `1f.${QUERY}.external-exchange-2.0`);
  mkdirSync(join(stage, "0"), { recursive: true });
  writeFileSync(join(stage, "0", "0_0.data"), "12345");
  writeFileSync(join(stage, "0", "committed"), "");
  mkdirSync(join(folder, "1f.20261201_054100_00008_ab12c.external-exchange-2.0"), { recursive: true });
  writeFileSync(join(folder, "1f.20261201_054100_00008_ab12c.external-exchange-2.0", "0_0.data"), "other");

  const entries = await exchangeFolder(folder).list(QUERY);

  expect(entries.toSorted((a, b) => a.path.localeCompare(b.path))).toEqual([
    { path: join(stage, "0", "0_0.data"), bytes: 5 },
    { path: join(stage, "0", "committed"), bytes: 0 },
  ]);
});

test("a folder that is not there is an error, and not an empty exchange (T13)", async () => {
  await expect(exchangeFolder(join(folder, "elsewhere")).list(QUERY)).rejects.toMatchObject({
    code: "exchange_unreadable",
    found: "ENOENT",
  });
});
