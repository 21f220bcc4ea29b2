/**
 * A worker of the queue `captures`: it takes jobs into its slots and runs each as a child process, which it bounds from its own side. A job shows a page and
 * captures frames of it; as in the field it may hang for ever, with a browser, its memory and a slot: the page never shows its video, and nothing but the
 * want of progress tells.
 *
 *   QUEUE_URL, QUEUE_TOKEN, QUEUE   where its jobs are
 *   SLOTS                           jobs at once (2)
 *   NO_PROGRESS                     ms after which a child that does no work is ended (60000); `off`, or the flag --no-bounds: never. For comparison only.
 *   WAIT                            ms for which a child may wait for one thing (as NO_PROGRESS)
 *   LEASE                           ms after which a job whose worker says nothing is another's (10000)
 *   ON_REAPED                       `return` (tried again, until the queue gives it up), `dead`, `complete`
 *   RECORD                          a file to which one line is added for whatever happens to a job
 *
 * Without RELEVO_INSTANCE nobody admits it: it takes jobs at once.
 */
import { appendFileSync, existsSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

enableCompileCache();
// A workload of your own imports "relevo/sdk"; in a clone, which is not built, the sources are taken.
const sources = new URL("../../src/sdk/index.ts", import.meta.url);
const { builtInQueue, createWorker, endOfChild, QueueClient } = await import(existsSync(sources) ? sources.href : "relevo/sdk");

const { QUEUE_URL, QUEUE_TOKEN, QUEUE = "captures", RECORD, ON_REAPED } = process.env;
if (!QUEUE_URL || !QUEUE_TOKEN) {
  console.error("QUEUE_URL and QUEUE_TOKEN must say where the jobs are.");
  process.exit(2);
}
const GRACE_MS = 25_000;
const isBounded = process.env.NO_PROGRESS !== "off" && !process.argv.includes("--no-bounds");
const noProgressMs = isBounded ? milliseconds("NO_PROGRESS", 60_000) : null;

const worker = createWorker({
  queue: builtInQueue(new QueueClient({ url: QUEUE_URL, token: QUEUE_TOKEN }), QUEUE),
  slots: milliseconds("SLOTS", 2),
  leaseMs: milliseconds("LEASE", 10_000),
  noProgressMs,
  waitMs: isBounded ? milliseconds("WAIT", noProgressMs) : null,
  ...(ON_REAPED ? { onReaped: ON_REAPED } : {}),
  run: capture,
  report: (sentence) => console.error(sentence),
});

/** A page is captured with a browser; anything else with a program that takes time and memory as one does. */
async function capture(job, { runChild }) {
  record("start", job);
  const program = typeof job.payload?.url === "string" ? "capture-page.mjs" : "capture-child.mjs";
  const child = runChild(process.execPath, [fileURLToPath(new URL(program, import.meta.url)), JSON.stringify(job.payload)], {
    killAfterMs: 1_000,
    // A page's scripts have no business with the queue.
    env: { QUEUE_TOKEN: undefined },
  });
  const end = await child.ended;
  if (end.kind !== "cancelled") record({ exited: "end", reaped: "reaped", failed: "failed" }[end.kind], job);
  if (end.kind !== "exited") console.error(`${job.id}: ${end.sentence} ${end.stderr.slice(-500)}`);
  return endOfChild(end, { progress: end.progress, ms: end.durationMs });
}

function record(event, { id, attempt }) {
  if (!RECORD) return;
  const line = { at: Date.now(), event, job: id, attempt, instance: worker.instance.name, pid: process.pid };
  appendFileSync(RECORD, `${JSON.stringify(line)}\n`);
}

function milliseconds(name, otherwise) {
  const text = process.env[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`${name} is ${text}; it must be a whole number above 0.`);
  process.exit(2);
}

// Kubernetes asks so before it kills: what runs has its time, and goes back to the queue if that is not enough.
process.once("SIGTERM", async () => {
  await worker.stop(GRACE_MS);
  process.exit(0);
});

const { host, port, leftovers } = await worker.start();
console.log(
  JSON.stringify({ message: "the worker takes jobs", host, port, instance: worker.instance.name, slots: worker.slots.total, leftovers }),
);
flushCompileCache();
