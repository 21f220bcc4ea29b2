import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { givenLeaseKey, leaseKeyIn } from "./key-file.ts";

const folder = mkdtempSync(join(tmpdir(), "relevo-lease-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test("the key is made once, for its owner alone, and is the same afterwards", () => {
  const path = join(folder, "lease.key");
  const key = leaseKeyIn(path);

  expect(key).toMatch(/^[\w-]{43}$/);
  expect(modeOf(path)).toBe(0o600);
  expect(leaseKeyIn(path)).toBe(key);
  expect(leaseKeyIn(join(folder, "another.key"))).not.toBe(key);
});

test("a key that others could read is closed to them", () => {
  const path = join(folder, "open.key");
  const key = leaseKeyIn(path);
  chmodSync(path, 0o644);

  expect(leaseKeyIn(path)).toBe(key);
  expect(modeOf(path)).toBe(0o600);
});

test("half a key, and a folder that is not there, are no key", () => {
  const short = join(folder, "short.key");
  writeFileSync(short, "short\n", { mode: 0o600 });

  for (const path of [short, join(folder, "no", "folder", "lease.key")])
    expect(() => leaseKeyIn(path)).toThrow(expect.objectContaining({ code: "lease_key_unusable" }));
});

test("a key that was given, and may be mounted read-only, is taken as it is; none is made in its place", () => {
  const path = join(folder, "given.key");
  expect(() => givenLeaseKey(path)).toThrow(expect.objectContaining({ code: "lease_key_unusable" }));
  writeFileSync(path, `${"k".repeat(32)}\n`, { mode: 0o444 });
  expect(givenLeaseKey(path)).toBe("k".repeat(32));
  expect(statSync(path).mode & 0o777).toBe(0o444);
  writeFileSync(join(folder, "short.key"), "k".repeat(31));
  expect(() => givenLeaseKey(join(folder, "short.key"))).toThrow(expect.objectContaining({ code: "lease_key_unusable" }));
});
