/**
 * The child of one job: holds memory as a browser does and captures frames, each of which is a byte on the progress pipe. With `hang` its page never shows
 * its video: it waits for ever, says that it is alive, uses next to no processor and keeps, or goes on taking, its memory.
 *
 *   {frames: 20, frameMs: 50, memoryMb: 20, hang: "video" | true, growMb: MB a second while it hangs}
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const { frames = 20, frameMs = 50, memoryMb = 20, hang = false, growMb = 0 } = JSON.parse(process.argv[2] ?? "{}") ?? {};
const PROGRESS_FD = Number(process.env.RELEVO_PROGRESS_FD ?? 1);
const MB = 1024 * 1024;
const held = [Buffer.alloc(memoryMb * MB, 1)];

if (hang) {
  writeSync(PROGRESS_FD, "wait a video element\n");
  for (;;) {
    await sleep(1_000);
    console.log("alive"); // as a browser that answers every ping
    if (growMb > 0) held.push(Buffer.alloc(growMb * MB, 1));
  }
}
for (let frame = 0; frame < frames; frame++) {
  await sleep(frameMs);
  writeSync(PROGRESS_FD, ".");
}
console.log(JSON.stringify({ frames, heldMb: Math.round(held.reduce((sum, { length }) => sum + length, 0) / MB) }));
