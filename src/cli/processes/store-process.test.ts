import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf } from "../exit.ts";
import { importStore } from "./store-process.ts";

test("an import of what is no export is a mistake of the file, and leaves nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "relevo-import-"));
  try {
    const file = join(folder, "garbage");
    writeFileSync(file, "garbage\n");
    const failed = await importStore({ store: join(folder, "new.db"), file, isDry: false, say: () => undefined }).catch(
      (error: unknown) => error,
    );
    expect([exitCodeOf(failed), readdirSync(folder)]).toEqual([2, ["garbage"]]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
