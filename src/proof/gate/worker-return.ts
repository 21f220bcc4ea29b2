/** Whether the killed worker came back, or another in its place: proven by a new task that ran on it to its end (T14). */
import { describeError } from "../../kernel/errors.ts";
import { formatDuration } from "../../kernel/units.ts";
import { within } from "./bounded.ts";
import { activeWorkers, type GateContext, look } from "./context.ts";
import { probeQuery } from "./own-query.ts";
import type { GateTask, GateWorker } from "./ports.ts";
import type { BackRecord } from "./record.ts";

const PROBE_MS = 60_000;
const PAUSE_MS = 1_000;

/** `survivors`: node ids of the workers that were not killed. A killed one may come back under its id or, as a new pod, under another. */
export async function awaitReturn(context: GateContext, killed: GateWorker, survivors: ReadonlySet<string>): Promise<BackRecord> {
  const { clock, signal, at, spec } = context;
  const boundMs = spec.windows.back;
  const until = at() + boundMs;
  let seen = await restarted(context, killed);
  let announcedAt: number | null = null;
  for (; at() < until; await clock.sleep(PAUSE_MS, signal)) {
    const nodes = await look(clock, "A read of system.runtime.nodes", () => activeWorkers(context));
    const newcomers = "failed" in nodes ? [] : nodes.seen.filter(({ nodeId }) => !survivors.has(nodeId));
    if (newcomers.length === 0) {
      seen = "failed" in nodes ? nodes.failed : `active workers: ${nodes.seen.map(({ nodeId }) => nodeId).join(", ") || "none"}`;
      continue;
    }
    announcedAt ??= at();
    const ids = new Set(newcomers.map(({ nodeId }) => nodeId));
    const task = await probe(context, ids);
    if (typeof task !== "string") {
      context.tell(`${task.nodeId} is back and ran the task ${task.taskId}`);
      return { boundMs, task: { taskId: task.taskId, nodeId: task.nodeId, at: at() }, announcedAt, seen: "it ran a new task to its end" };
    }
    seen = `${[...ids].join(", ")} announced, and ran nothing new: ${task}`;
  }
  context.tell(`no worker came back within ${formatDuration(boundMs)}: ${seen}`);
  return { boundMs, task: null, announcedAt, seen };
}

async function restarted({ killer }: GateContext, killed: GateWorker): Promise<string> {
  try {
    await killer.restart(killed);
    return "nothing yet";
  } catch (error) {
    return `it could not be started again: ${describeError(error)}`;
  }
}

/** A task of a query that was sent after the kill; else what was seen instead. */
async function probe(context: GateContext, ids: ReadonlySet<string>): Promise<GateTask | string> {
  const { engine, clock, declaredWorkers } = context;
  try {
    const statement = await within(clock, PROBE_MS, "A probe query", engine.start(probeQuery(declaredWorkers), { retry_policy: "NONE" }));
    const failure = await within(clock, PROBE_MS, "A probe query", endOf(statement)).finally(() =>
      statement.cancel().catch(() => undefined),
    );
    if (failure !== null) return failure;
    const tasks = await within(clock, PROBE_MS, "A read of system.runtime.tasks", engine.tasks([statement.queryId]));
    const ran = tasks.find(({ nodeId, state }) => ids.has(nodeId) && state === "FINISHED");
    return ran ?? `the tasks of ${statement.queryId} were on ${[...new Set(tasks.map(({ nodeId }) => nodeId))].join(", ") || "no node"}`;
  } catch (error) {
    return describeError(error);
  }
}

/** Null when it gave its rows. */
async function endOf(statement: Awaited<ReturnType<GateContext["engine"]["start"]>>): Promise<string | null> {
  for (let page = await statement.next(); page !== undefined; page = await statement.next())
    if (page.error !== null) return `${page.error.name}: ${page.error.message}`;
  return null;
}
