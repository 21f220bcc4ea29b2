import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { WatchedFile } from "./watched-file.ts";

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
  const file = new WatchedFile({
    ...{ path, clock, read },
    onRead: (now: string, before: string) => void told.push(`${before}, ${now}`),
    onTrouble: (trouble) => void told.push(trouble),
  });
  return { path, clock, told, read, reads: () => reads, file };
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
  expect(told).toEqual(["the first, the second"]);
});

test("one that was written over in its place with the time and the length of the one before is seen", async () => {
  const { path, clock, file } = aFile("same", "the first");
  const time = new Date(0);
  utimesSync(path, time, time);
  await clock.advance(1_000);
  expect(file.current()).toBe("the first");

  writeFileSync(path, "the other");
  utimesSync(path, time, time);
  await clock.advance(1_000);
  expect(file.current()).toBe("the other");
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
  expect(told).toEqual([expect.stringContaining("ENOENT"), expect.stringContaining("too short"), "the first, the next"]);
});

test("what could not be read is tried again, also when nothing of the file has changed since: what was taken out of it does not stay", async () => {
  const { path, clock } = aFile("refused", "the first");
  let isRefused = false;
  const read = (): string => {
    if (isRefused) throw new Error("EACCES");
    return readFileSync(path, "utf8");
  };
  const file = new WatchedFile({ path, clock, read, onRead: () => undefined, onTrouble: () => undefined });
  const states: string[] = [];
  writeFileSync(path, "the second");
  for (const next of [true, false]) {
    isRefused = next;
    await clock.advance(1_000);
    states.push(file.current());
  }

  expect(states).toEqual(["the first", "the second"]);
});

test("at the start a file that is not there is a fault", () => {
  const { path, clock, read } = aFile("gone", "the first");
  rmSync(path);
  const quiet = { onRead: () => undefined, onTrouble: () => undefined };

  expect(() => new WatchedFile({ path, clock, read, ...quiet })).toThrow("ENOENT");
});
