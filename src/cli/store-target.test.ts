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

test("a password comes from a file, as it is when it is asked for: a rotated one needs no restart", () => {
  writeFileSync(join(folder, "password"), "hunter2\n");
  const url = "postgresql://me@db/relevo";
  const byOption = storeTargetOf(contextWith(), { store: url, storePasswordFile: "password" });
  const byVariable = storeTargetOf(contextWith({ RELEVO_STORE_PASSWORD_FILE: "password" }), { store: url });
  expect([byOption.store, byOption.storePassword?.(), byVariable.storePassword?.()]).toEqual([url, "hunter2", "hunter2"]);
  writeFileSync(join(folder, "password"), "hunter3\n");
  expect([byOption.storePassword?.(), byVariable.storePassword?.()]).toEqual(["hunter3", "hunter3"]);
});

test("a password's file that is not there is said at once", () => {
  expect(() => storeTargetOf(contextWith(), { store: "postgres://db/r", storePasswordFile: "none" })).toThrow(
    expect.objectContaining({ code: "file_unreadable" }),
  );
});
