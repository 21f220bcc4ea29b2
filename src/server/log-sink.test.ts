import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { storeUnavailable } from "../store/port.ts";
import { createLogger } from "./log.ts";
import { LogSink } from "./log-sink.ts";

const NOON = Date.parse("2026-11-30T12:00:00Z");

/** A file whose disk takes `space` bytes more. */
function aDisk(space = Number.POSITIVE_INFINITY) {
  const disk = {
    text: "",
    space,
    writeSome(bytes: Uint8Array): number {
      if (disk.space <= 0) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      const written = Math.min(bytes.length, disk.space);
      disk.text += Buffer.from(bytes.subarray(0, written)).toString();
      disk.space -= written;
      return written;
    },
  };
  return disk;
}

test("a line is written before the next thing happens", () => {
  const clock = new VirtualClock(NOON);
  const disk = aDisk();
  const log = createLogger({
    level: "info",
    name: "gateway",
    clock,
    destination: new LogSink({ clock, name: "gateway", writeSome: (bytes) => disk.writeSome(bytes) }),
  });

  log.info({ event: "up" }, "it is up");

  expect(JSON.parse(disk.text)).toEqual({ level: "info", time: "2026-11-30T12:00:00.000Z", name: "gateway", event: "up", msg: "it is up" });
});

test("an error is written with its sentence and its code", () => {
  const clock = new VirtualClock(NOON);
  const disk = aDisk();
  const destination = new LogSink({ clock, name: "controller", writeSome: (bytes) => disk.writeSome(bytes) });

  createLogger({ level: "info", name: "controller", clock, destination }).error(
    { error: storeUnavailable("the disk is full", undefined) },
    "a pass failed",
  );

  expect(JSON.parse(disk.text).error).toMatchObject({
    code: "store_unavailable",
    message: "the store cannot be written: the disk is full",
  });
});

test("on a full disk lines wait, in parts too, and come whole and in order once there is space", async () => {
  const clock = new VirtualClock(NOON);
  const disk = aDisk(5);
  const sink = new LogSink({ clock, name: "gateway", writeSome: (bytes) => disk.writeSome(bytes) });

  for (const line of ["one\n", "two\n", "three\n"]) sink.write(line);
  expect(disk.text).toBe("one\nt");
  await clock.advance(1_000);
  disk.space = 100;
  await clock.advance(1_000);

  expect(disk.text).toBe("one\ntwo\nthree\n");
});

test("more than fits is dropped, and how much is the first thing said afterwards", async () => {
  const clock = new VirtualClock(NOON);
  const disk = aDisk(0);
  const sink = new LogSink({ clock, name: "gateway", writeSome: (bytes) => disk.writeSome(bytes) });
  const line = `${"x".repeat(1023)}\n`;

  for (let count = 0; count < 1_030; count++) sink.write(line);
  disk.space = Number.POSITIVE_INFINITY;
  await clock.advance(1_000);
  sink.write("next\n");

  expect(disk.text.replaceAll(line, "")).toBe(
    '{"level":"warn","time":"2026-11-30T12:00:00.200Z","name":"gateway","event":"log_dropped","lines":6,"msg":"log lines were dropped: they could not be written"}\nnext\n',
  );
});
