/**
 * The kill window: waits until the engine itself says that two workers have running tasks of the run's queries (T12), and until data of them was seen in the
 * exchange where there should be some (T13); the last look before the kill is the one that counts.
 */
import { formatDuration } from "../../kernel/units.ts";
import { activeWorkers, type GateContext, look, PAUSE_MS } from "./context.ts";
import type { ExchangeWatch } from "./exchange-watch.ts";
import type { Followed } from "./followed.ts";
import type { GateTask } from "./ports.ts";
import { MOST_LOOKS, type NodesRecord, type TasksLook } from "./record.ts";
import { executingOf } from "./verdict.ts";

export interface Window {
  readonly looks: readonly TasksLook[];
  /** The worker with the most running tasks, or the one that the document names; undefined: there was no such moment. */
  readonly victim: { readonly nodeId: string; readonly uri: string } | undefined;
}

export interface WindowOptions {
  readonly nodes: NodesRecord;
  readonly followed: Followed[];
  readonly exchange: ExchangeWatch;
  /** Whether data must lie in the exchange before the kill, as far as it can be waited for. */
  readonly needsExchange: boolean;
  /** One more query, when all running tasks stay on one worker; undefined: there may be no more. */
  readonly addOne: (() => Promise<Followed>) | undefined;
}

/** With retries data comes when the first tasks end: so long the open window is kept for it. */
const EXCHANGE_WAIT_MS = 15_000;
/** So long all tasks may be on one worker before another query is added. */
const ONE_SIDED_MS = 8_000;

export async function openWindow(context: GateContext, options: WindowOptions): Promise<Window> {
  const { clock, signal, at, spec } = context;
  const looks: TasksLook[] = [];
  let firstAt: number | undefined;
  let openAt: number | undefined;
  let oneSidedAt: number | undefined;
  const until = at() + spec.windows.open;
  for (; at() < until && options.followed.some(({ outcome }) => outcome === undefined); await clock.sleep(PAUSE_MS, signal)) {
    const latest = await lookAtTasks(context, options.followed);
    await options.exchange.list(idsOf(options.followed));
    if (latest === undefined) continue;
    looks.push(latest);
    if (looks.length > MOST_LOOKS) looks.shift();
    const executing = executingOf(latest);
    if (executing.length > 0) firstAt ??= latest.at;
    oneSidedAt = executing.length === 1 ? (oneSidedAt ?? latest.at) : undefined;
    if (oneSidedAt !== undefined && latest.at - oneSidedAt >= ONE_SIDED_MS && options.addOne !== undefined) {
      context.tell(`all running tasks are on ${executing[0]}: one more query is sent`);
      options.followed.push(await options.addOne());
      oneSidedAt = undefined;
    }
    if (executing.length < 2) continue;
    openAt ??= latest.at;
    const isLongEnough = latest.at - (firstAt ?? latest.at) >= spec.windows.before;
    const hasExchange = !options.needsExchange || options.exchange.hasSeen || latest.at - openAt >= EXCHANGE_WAIT_MS;
    const victim = isLongEnough && hasExchange ? victimOf(options, latest, spec.kill.worker) : undefined;
    if (victim !== undefined) {
      context.tell(`${executing.length} workers have running tasks: ${tellRunning(latest)}`);
      return { looks, victim };
    }
  }
  context.tell(`there was no moment to kill a worker within ${formatDuration(spec.windows.open)}`);
  return { looks, victim: undefined };
}

/** Nodes and tasks as the engine has them; undefined when it did not say. */
async function lookAtTasks(context: GateContext, followed: readonly Followed[]): Promise<TasksLook | undefined> {
  const { clock, engine, at } = context;
  const [nodes, tasks] = await Promise.all([
    look(clock, "A read of system.runtime.nodes", () => activeWorkers(context)),
    look(clock, "A read of system.runtime.tasks", () => engine.tasks(idsOf(followed))),
  ]);
  if ("failed" in nodes || "failed" in tasks) return undefined;
  return { at: at(), announced: nodes.seen.map(({ nodeId }) => nodeId), running: countRunning(tasks.seen) };
}

export function idsOf(followed: readonly Followed[]): readonly string[] {
  return followed.map(({ queryId }) => queryId);
}

export function countRunning(tasks: readonly GateTask[]): TasksLook["running"] {
  const counts = new Map<string, { readonly nodeId: string; readonly queryId: string; readonly tasks: number }>();
  for (const { nodeId, queryId, state } of tasks) {
    if (state !== "RUNNING") continue;
    const key = `${nodeId} ${queryId}`;
    counts.set(key, { nodeId, queryId, tasks: (counts.get(key)?.tasks ?? 0) + 1 });
  }
  return [...counts.values()];
}

export function tellRunning({ running }: Pick<TasksLook, "running">): string {
  return running.map(({ nodeId, queryId, tasks }) => `${nodeId} ${tasks} of ${queryId}`).join(", ") || "no running task";
}

/** Undefined while the one that the document names has no running task. */
function victimOf({ nodes }: WindowOptions, latest: TasksLook, named: string | undefined): Window["victim"] {
  const tasksOf = (nodeId: string) => latest.running.filter((each) => each.nodeId === nodeId).reduce((sum, { tasks }) => sum + tasks, 0);
  const [busiest] = nodes.announced
    .filter(({ nodeId }) => (named === undefined || nodeId === named) && tasksOf(nodeId) > 0)
    .toSorted((a, b) => tasksOf(b.nodeId) - tasksOf(a.nodeId));
  return busiest;
}
