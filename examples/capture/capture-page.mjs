/**
 * The child of a job with a real browser: opens a page in headless Chromium, waits for its video element, and captures frames; the bytes of the frames are the
 * progress. It has no bound of its own, as many such programs have none: a page without a video keeps it, the browser and their memory for ever.
 *
 *   {url: "https://…", frames: 5}
 */
import { spawn } from "node:child_process";
import { writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const { url, frames = 5 } = JSON.parse(process.argv[2] ?? "{}");
const PROGRESS_FD = Number(process.env.RELEVO_PROGRESS_FD ?? 1);
const LOOK_EVERY_MS = 100;

// No sandbox: it needs rights that a container does not have. The container is the wall.
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0"];
const browser = spawn("chromium", [...flags, `--user-data-dir=${join(tmpdir(), "profile")}`, url], { stdio: ["ignore", "ignore", "pipe"] });
let said = "";
browser.stderr.on("data", (chunk) => {
  said = `${said}${chunk}`.slice(-500);
});
browser.once("exit", () => {
  console.error(said);
  process.exit(1);
});
browser.once("error", (error) => {
  console.error(error.message);
  process.exit(1);
});

const endpoint = await debuggerOf(browser);
const page = await openPage(endpoint);
writeSync(PROGRESS_FD, "wait a video element\n");
while (!(await page("Runtime.evaluate", { expression: "document.querySelector('video') !== null" })).result.value)
  await sleep(LOOK_EVERY_MS);
let bytes = 0;
for (let frame = 0; frame < frames; frame++) {
  const { data } = await page("Page.captureScreenshot", { format: "jpeg" });
  bytes += data.length;
  writeSync(PROGRESS_FD, ".".repeat(Math.ceil(data.length / 1024)));
}
console.log(JSON.stringify({ frames, bytes }));
browser.removeAllListeners("exit");
browser.kill();
process.exit(0);

/** The address that the browser tells on its standard error. */
async function debuggerOf({ stderr }) {
  for await (const line of createInterface({ input: stderr })) {
    const found = /DevTools listening on ws:\/\/([^/]+)\//.exec(line);
    if (found === null) continue;
    stderr.resume();
    return found[1];
  }
  throw new Error("the browser said no address");
}

/** Calls of the DevTools protocol on the page. */
async function openPage(address) {
  let target;
  while (target === undefined) {
    target = (await (await fetch(`http://${address}/json/list`)).json()).find(({ type }) => type === "page");
    if (target === undefined) await sleep(LOOK_EVERY_MS);
  }
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error === undefined) resolve?.(result);
    else reject?.(new Error(error.message));
  };
  let last = 0;
  return (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      socket.send(JSON.stringify({ id: last, method, params }));
    });
}
