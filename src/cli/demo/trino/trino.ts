/**
 * `relevo demo trino`: clusters of a real Trino as real processes, behind the gateway, while clients ask and check each answer: the coordinator's node drifts, a
 * worker's node goes at a deadline, a worker is killed, a coordinator is killed.
 */
import { TrinoHttp } from "../../../drivers/trino/http.ts";
import { POOLS } from "../../../kube/resources.ts";
import type { Stack } from "../../processes/stack.ts";
import type { DemoOptions } from "../main-job.ts";
import { TrinoClients } from "./clients.ts";
import { playCoordinator } from "./coordinator.ts";
import { playDeadline } from "./deadline.ts";
import { type TrinoReport, trinoReportOf } from "./report.ts";
import { poolDocument, startSite, type TrinoSite } from "./site.ts";
import { CLUSTER_WITHIN_MS, POOL, seconds, type Stage } from "./stage.ts";
import { playVoluntary } from "./voluntary.ts";
import { playWorker } from "./worker.ts";

export interface RunningTrino {
  readonly report: TrinoReport;
  readonly stack: Stack;
  stop(): Promise<void>;
}

/** Plays everything and leaves a cluster running; `stop` ends it. */
export async function playTrino(options: DemoOptions): Promise<RunningTrino> {
  const { clock, narrator } = options;
  const startedAt = clock.monotonic();
  narrator.title("starting: a real Trino (assembled the first time, some minutes), embedded cluster, controller, gateway");
  const site = await startSite(options);
  try {
    const stage = stageOf(site, options);
    narrator.title("the pool trino: a coordinator and two workers");
    await site.kube.create(POOLS, poolDocument(site), { namespace: "default" });
    await site.world.until("a serving cluster", CLUSTER_WITHIN_MS, async () => (await site.world.serving(POOL)) === 1);
    narrator.tell(`it serves after ${seconds(clock.monotonic() - startedAt)}`);
    const report = await playActs(stage, startedAt);
    return { report, stack: site.stack, stop: () => site.stop() };
  } catch (error) {
    await site.stop();
    throw error;
  }
}

function stageOf(site: TrinoSite, { clock, random, signal, narrator, deadlineMs }: DemoOptions): Stage {
  const http = new TrinoHttp(clock);
  const clients = new TrinoClients({ url: site.stack.gatewayUrl, clock, random, signal });
  site.undo.push(
    () => http.destroy(),
    () => clients.close(),
  );
  return { site, clients, clock, signal, narrator, http, deadlineMs, facts: [] };
}

async function playActs(stage: Stage, startedAt: number): Promise<TrinoReport> {
  const { narrator, clients, clock, facts } = stage;
  narrator.title("act 1, voluntary: the coordinator's node drifts");
  const { replaced, seal, jdbc } = await playVoluntary(stage);
  narrator.title("act 2, deadline: a spot notice for a worker's node; the same query with and without fault tolerance");
  const { survivedAfterMs, withoutFteFailed, outlasted, memberDrain } = await playDeadline(stage);
  narrator.title("act 3, worker: killed, its launcher.pid left behind; and the same without the cleanup");
  const { back, backWithoutCleanup, withoutCleanup } = await playWorker(stage);
  narrator.title("act 4, coordinator: killed");
  const { lost, explicit, hung, resubmitted, orphans } = await playCoordinator(stage);

  const failedOf = ({ wrong, failed }: { readonly wrong: number; readonly failed: number }) => wrong + failed;
  const [voluntary, deadline] = [clients.countsOf("voluntary"), clients.countsOf("deadline")];
  for (const { act, sql, why } of clients.failures) facts.push({ act, says: `${why}; of ${sql}` });
  return trinoReportOf(
    {
      queries: clients.total(),
      voluntary: { sent: voluntary.sent, failed: failedOf(voluntary) },
      deadline: { sent: deadline.sent, failed: failedOf(deadline), survivedAfterMs, withoutFte: { failed: withoutFteFailed } },
      worker: { back, backWithoutCleanup },
      coordinator: { lost, explicit, hung },
      transactions: clients.transactions,
    },
    {
      context: { replaced, seal, jdbc, outlasted, memberDrain, withoutCleanup, resubmitted, orphans },
      evidence: facts,
      durationMs: clock.monotonic() - startedAt,
    },
  );
}
