import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { storeContract } from "../../test/contracts/store.ts";
import { openStore } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "relevo-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
storeContract("SQLite in a file", () => openStore({ path: join(folder, `${files++}`, "relevo.db") }));
storeContract("SQLite in memory", () => openStore({ path: ":memory:" }));
