/** Whether the declared workers belong to the cluster and work (T8, T12): all are active, and a task of one statement has run on each. */
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import { authorityOf } from "../faults.ts";
import type { InstanceTarget } from "../port.ts";
import type { NodeInfo } from "./answers.ts";
import { type Engine, type EngineNode, readInfo } from "./engine.ts";
import { ACTIVE_WORKERS } from "../../model/trino.ts";
import type { TrinoHttp } from "./http.ts";

/**
 * The table of tasks is read on every node, each of which says what runs on itself: so this very statement is a task on each of them, and its answer names them.
 */
const PROBE = "SELECT DISTINCT node_id, query_id FROM system.runtime.tasks";

export interface Proof {
  readonly target: InstanceTarget;
  readonly coordinator: NodeInfo;
  readonly http: TrinoHttp;
}

/** Errors, all retryable: `trino_workers_missing`, `trino_wrong_environment`, `trino_wrong_version`, `trino_workers_idle`, and those of the engine. */
export async function proveWorkers(engine: Engine, proof: Proof): Promise<void> {
  const declared = proof.target.trino?.workers ?? 0;
  if (declared === 0) return;
  // Without any worker the engine would let each of our statements wait for one.
  if ((await activeByGauge(engine)) === 0) throw (await strangerAmong(proof)) ?? missing([], 0, proof.target);
  const nodes = await engine.nodes();
  const active = nodes.filter(({ isCoordinator, state }) => !isCoordinator && state === "active");
  if (active.length < declared) throw (await strangerAmong(proof)) ?? missing(nodes, active.length, proof.target);
  const { queryId, rows } = await engine.read(PROBE);
  const worked = new Set(rows.filter(([, query]) => query === queryId).map(([node]) => node));
  const idle = active.filter(({ nodeId }) => !worked.has(nodeId));
  if (active.length - idle.length < declared) throw idleWorkers(idle, declared, proof.target);
}

/** Undefined: the server does not say. */
async function activeByGauge(engine: Engine): Promise<number | undefined> {
  try {
    return (await engine.gauges([ACTIVE_WORKERS])).get(ACTIVE_WORKERS);
  } catch (error) {
    if (isRetryable(error)) throw error;
    return undefined; // our user may not read metrics, or the server sends all of them: its nodes say it
  }
}

/** Of those whose address is known: one that the coordinator leaves out because it was set up for another cluster. */
async function strangerAmong({ target, coordinator, http }: Proof): Promise<RelevoError | undefined> {
  for (const member of target.trino?.members ?? []) {
    const where = authorityOf(member);
    const info = await readInfo(`http://${where}`, http).catch(() => undefined); // it is away: then it is missing, which is said
    if (info === undefined) continue;
    const found = `${info.nodeId} at ${where}: environment ${info.environment}, version ${info.version}`;
    const allowed = `environment ${coordinator.environment}, version ${coordinator.version}`;
    if (info.environment !== coordinator.environment)
      return new RelevoError(
        "trino_wrong_environment",
        `The worker at ${where} is of another environment: the coordinator leaves it out.`,
        {
          class: "retryable",
          found,
          allowed,
          todo: "Set node.environment of all nodes to the same value.",
        },
      );
    if (info.version !== coordinator.version)
      return new RelevoError("trino_wrong_version", `The worker at ${where} is of another version: the coordinator leaves it out.`, {
        class: "retryable",
        found,
        allowed,
        todo: "Run the same image on all nodes.",
      });
  }
  return undefined;
}

function missing(nodes: readonly EngineNode[], active: number, target: InstanceTarget): RelevoError {
  const workers = nodes.filter(({ isCoordinator }) => !isCoordinator).map(({ nodeId, state }) => `${nodeId} ${state}`);
  return new RelevoError("trino_workers_missing", `Of the cluster at ${authorityOf(target)} not all workers are active.`, {
    class: "retryable",
    found: `${active} active: ${workers.join(", ") || "none announced"}`,
    allowed: `${target.trino?.workers ?? 0} active workers`,
    todo: "If it stays so: compare discovery.uri, node.environment and the version of its workers with the coordinator's.",
  });
}

function idleWorkers(idle: readonly EngineNode[], declared: number, target: InstanceTarget): RelevoError {
  return new RelevoError("trino_workers_idle", `Of the cluster at ${authorityOf(target)} not all workers ran a task of the probe.`, {
    class: "retryable",
    found: idle.map(({ nodeId }) => nodeId).join(", "),
    allowed: `a task on ${declared} workers`,
  });
}
