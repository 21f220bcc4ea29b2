import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CliContext } from "./context.ts";
import { storeTargetOf } from "./store-target.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-target-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const contextWith = (env: Readonly<Record<string, string>> = {}): CliContext => ({ cwd: folder, env }) as CliContext;

test("a store is a file beside the command, unless something else is said", () => {
  expect(storeTargetOf(contextWith(), {})).toEqual({ store: join(folder, ".relevo/store.db") });
  expect(storeTargetOf(contextWith(), { store: "x.db" })).toEqual({ store: join(folder, "x.db") });
  expect(storeTargetOf(contextWith({ RELEVO_STORE: "postgres://u:p@db/relevo" }), {})).toEqual({ store: "postgres://u:p@db/relevo" });
});

test("a password on the command line is refused and not shown again", () => {
  const act = () => storeTargetOf(contextWith(), { store: "postgresql://me:hunter2@db:5432/relevo" });
  expect(act).toThrow(expect.objectContaining({ code: "store_password_shown", found: "postgresql://me:…@db:5432/relevo" }));
});

test("a password comes from a file", () => {
  writeFileSync(join(folder, "password"), "hunter2\n");
  const target = { store: "postgresql://me@db/relevo", storePassword: "hunter2" };
  expect(storeTargetOf(contextWith(), { store: "postgresql://me@db/relevo", storePasswordFile: "password" })).toEqual(target);
  expect(storeTargetOf(contextWith({ RELEVO_STORE_PASSWORD_FILE: "password" }), { store: "postgresql://me@db/relevo" })).toEqual(target);
  expect(() => storeTargetOf(contextWith(), { store: "postgres://db/r", storePasswordFile: "none" })).toThrow(
    expect.objectContaining({ code: "file_unreadable" }),
  );
});
