import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { SecretFile } from "./secret-file.ts";

const folder = mkdtempSync(join(tmpdir(), "relevo-secret-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function aFile(name: string, text: string) {
  const path = join(folder, name);
  writeFileSync(path, text);
  const clock = new VirtualClock(0);
  const told: string[] = [];
  let reads = 0;
  const read = (): string => {
    reads += 1;
    const secret = readFileSync(path, "utf8").trim();
    if (secret.length < 4) throw new Error("too short");
    return secret;
  };
  const log = {
    error: (_: object, message: string) => void told.push(message),
    info: (_: object, message: string) => void told.push(message),
  };
  return { path, clock, told, read, reads: () => reads, file: new SecretFile({ path, clock, read, log }) };
}

test("a secret that is exchanged in its file counts within a second; the file is read only when it changed", async () => {
  const { path, clock, told, file, reads } = aFile("plain", "the first\n");
  expect(file.current()).toBe("the first");
  await clock.advance(60_000);
  expect([file.current(), reads()]).toEqual(["the first", 1]);

  writeFileSync(`${path}.new`, "the second\n");
  renameSync(`${path}.new`, path);
  expect(file.current()).toBe("the first");
  await clock.advance(1_000);
  expect([file.current(), reads()]).toEqual(["the second", 2]);
  expect(told).toEqual(["the secret was exchanged in its file: only what is signed with the new one is taken"]);
});

test("a mounted Secret, a link that turns to another folder, is seen too", async () => {
  const { path, clock, file } = aFile("mounted", "the first\n");
  rmSync(path);
  writeFileSync(`${path}.2`, "the other\n");
  symlinkSync(`${path}.2`, path);
  await clock.advance(1_000);
  expect(file.current()).toBe("the other");
});

test("while there is none, or one that does not do, the one from before stays; that is said once, and the next good one is taken", async () => {
  const { path, clock, told, file } = aFile("wrong", "the first\n");
  const states: string[] = [];
  for (const change of [() => rmSync(path), () => writeFileSync(path, "x"), () => undefined, () => writeFileSync(path, "the next")]) {
    change();
    await clock.advance(1_000);
    states.push(file.current());
  }

  expect(states).toEqual(["the first", "the first", "the first", "the next"]);
  expect(told.map((line) => line.replace(/: .*/, ""))).toEqual([
    "the secret from before stays",
    "the secret from before stays",
    "the secret was exchanged in its file",
  ]);
  expect(told.join()).not.toMatch(/the first|the next/);
});

test("at the start a file that is not there is a fault", () => {
  const { path, clock, read } = aFile("gone", "the first");
  rmSync(path);
  const log = { error: () => undefined, info: () => undefined };

  expect(() => new SecretFile({ path, clock, read, log })).toThrow("ENOENT");
});
