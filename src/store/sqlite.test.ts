import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { storeContract } from "../../test/contracts/store.ts";
import { storeModelContract } from "../../test/contracts/store-model.ts";
import { openStore } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "relevo-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const onDisk = () => openStore({ path: join(folder, `${files++}`, "relevo.db") });
const inMemory = () => openStore({ path: ":memory:" });

storeContract("SQLite in a file", onDisk);
storeContract("SQLite in memory", inMemory);
storeModelContract("SQLite in a file", onDisk, 10);
storeModelContract("SQLite in memory", inMemory, 150);
