import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { passwordFor } from "./postgres-password.ts";
import { parsePostgresUrl } from "./postgres-url.ts";

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-pass-"));
  file = join(folder, "pass");
  vi.stubEnv("PGPASSWORD", undefined);
  vi.stubEnv("PGPASSFILE", file);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const TARGET = parsePostgresUrl("postgresql://me@db:5433/fleet");
const ofFile = (text: string): string | undefined => {
  writeFileSync(file, text, { mode: 0o600 });
  return passwordFor(TARGET);
};

test("the first line that fits has the password; stars fit everything, a backslash keeps a colon", () => {
  expect(ofFile("# db:5433:fleet:me:no\nother:*:*:*:no\ndb:5433:fleet:me:p\\:a\\\\ss\n*:*:*:*:late\n")).toBe("p:a\\ss");
  expect(ofFile("*:5432:*:*:no\n*:*:*:you:no\n*:*:*:*:late")).toBe("late");
  expect(ofFile("db:5433:fleet:me\n")).toBeUndefined();
});

test("PGPASSWORD comes first; a file that others may read counts for nothing; neither is no password", () => {
  expect(passwordFor(TARGET)).toBeUndefined();
  expect(ofFile("*:*:*:*:late\n")).toBe("late");
  chmodSync(file, 0o640);
  expect(passwordFor(TARGET)).toBeUndefined();
  vi.stubEnv("PGPASSWORD", "first");
  expect(passwordFor(TARGET)).toBe("first");
});
