/** What the Trino demo came to: one JSON document, one table, and whether its claims and its controls held. */
import Table from "cli-table3";
import { BARE } from "../table.ts";
import type { Counts, Transactions } from "./clients.ts";
import type { Fact } from "./stage.ts";

/** In all, or the run says little. */
export const LEAST_QUERIES = 50;

export interface TrinoFigures {
  readonly queries: Counts;
  readonly voluntary: { readonly sent: number; readonly failed: number };
  readonly deadline: {
    readonly sent: number;
    readonly failed: number;
    /** From the loss of the worker to the right answer of the last query that had run on it; null: there is none. */
    readonly survivedAfterMs: number | null;
    /** The same query at the same time, without fault tolerance. */
    readonly withoutFte: { readonly failed: number };
  };
  readonly worker: { readonly back: boolean; readonly backWithoutCleanup: boolean };
  readonly coordinator: { readonly lost: number; readonly explicit: number; readonly hung: number };
  readonly transactions: Transactions;
}

/** What stands beside the figures, so that a reader can tell that they are of something. */
export interface TrinoContext {
  readonly replaced: boolean;
  readonly seal: string | null;
  /** What the JDBC driver sent while the cluster was replaced. */
  readonly jdbc: { readonly sent: number; readonly right: number };
  /** Whether all queries of the deadline ran when the worker went, with tasks on it. */
  readonly outlasted: boolean;
  readonly memberDrain: string | null;
  /** The process that was left in `launcher.pid` lived, and the container was begun again so often. */
  readonly withoutCleanup: { readonly joined: boolean; readonly restarts: number; readonly refusal: string | null };
  readonly resubmitted: { readonly sent: number; readonly right: number };
  readonly orphans: { readonly left: number; readonly swept: number };
}

export interface TrinoReport extends TrinoFigures {
  readonly evidence: readonly Fact[];
  readonly context: TrinoContext;
  readonly durationS: number;
  readonly level: "real processes";
  readonly held: boolean;
  readonly broken: readonly string[];
}

export function trinoReportOf(
  figures: TrinoFigures,
  { context, evidence, durationMs }: { readonly context: TrinoContext; readonly evidence: readonly Fact[]; readonly durationMs: number },
): TrinoReport {
  const broken = brokenClaims(figures, context);
  return {
    ...figures,
    evidence,
    context,
    durationS: Math.round(durationMs / 100) / 10,
    level: "real processes",
    held: broken.length === 0,
    broken,
  };
}

/** Each claim in words, when it did not hold; the controls must fail, or the acts proved nothing. */
export function brokenClaims(
  { queries, voluntary, deadline, worker, coordinator, transactions }: TrinoFigures,
  { replaced, seal, jdbc, outlasted, withoutCleanup, resubmitted, orphans }: TrinoContext,
): readonly string[] {
  const broken: string[] = [];
  const claim = (holds: boolean, sentence: string) => {
    if (!holds) broken.push(sentence);
  };
  claim(queries.sent >= LEAST_QUERIES, `only ${queries.sent} queries were sent: this run proves little`);
  claim(queries.wrong === 0, `${queries.wrong} answers were wrong`);
  claim(queries.sent === queries.right + queries.wrong + queries.failed, "some queries have neither an answer nor an error");
  claim(transactions.failed === 0, `${transactions.failed} of ${transactions.opened} transactions failed`);
  claim(transactions.committed > 0, "no transaction was committed: this run proves nothing");

  claim(replaced, "voluntary: the cluster was not replaced");
  claim(seal === "confirmed", `voluntary: the seal of the old cluster is ${seal ?? "missing"}, not confirmed`);
  claim(voluntary.sent > 0 && voluntary.failed === 0, `voluntary: ${voluntary.failed} of ${voluntary.sent} queries failed`);

  claim(
    jdbc.sent > 0 && jdbc.right === jdbc.sent,
    `voluntary: ${jdbc.right} of ${jdbc.sent} queries of the JDBC driver were answered right`,
  );

  claim(outlasted, "deadline: not all queries outlasted the notice on the worker that went: this run proves nothing");
  claim(deadline.failed === 0, `deadline: ${deadline.failed} of ${deadline.sent} queries failed in spite of fault tolerance`);
  claim(deadline.survivedAfterMs !== null, "deadline: no query survived the loss");
  claim(deadline.withoutFte.failed > 0, "deadline: nothing was lost without fault tolerance: this run proves nothing");

  claim(worker.back, "worker: it did not come back, or ran no task");
  claim(withoutCleanup.joined, "worker: the one without cleanup never belonged to the cluster: this run proves nothing");
  claim(!worker.backWithoutCleanup, "worker: it came back without the cleanup: this run proves nothing");
  claim(withoutCleanup.refusal !== null, "worker: the launcher refused nothing: this run proves nothing");

  claim(coordinator.lost > 0, "coordinator: no query ran when it was killed: this run proves nothing");
  claim(coordinator.hung === 0, `coordinator: ${coordinator.hung} clients were left hanging`);
  claim(
    coordinator.explicit === coordinator.lost,
    `coordinator: ${coordinator.lost - coordinator.explicit} of ${coordinator.lost} clients got no error of the protocol`,
  );
  claim(resubmitted.sent > 0 && resubmitted.right === resubmitted.sent, "coordinator: what was sent again did not give the right answer");
  claim(orphans.left > 0, "coordinator: no folder of the exchange was left behind: the sweep proved nothing");
  claim(orphans.swept === orphans.left, `coordinator: ${orphans.swept} of ${orphans.left} orphaned folders of the exchange were swept`);
  return broken;
}

export function renderTrino(report: TrinoReport): string {
  const { queries, voluntary, deadline, worker, coordinator, transactions, context } = report;
  const table = new Table({
    head: ["act", "queries", "failed", "what came of it"],
    chars: { ...BARE, middle: "  " },
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: ["left", "right", "right", "left"],
  });
  const { left, swept } = context.orphans;
  table.push(
    ["voluntary", voluntary.sent, voluntary.failed, context.replaced ? `replaced, sealed (${context.seal ?? "not seen"})` : "not replaced"],
    [
      "deadline",
      deadline.sent,
      deadline.failed,
      deadline.survivedAfterMs === null ? "not survived" : `survived ${(deadline.survivedAfterMs / 1000).toFixed(1)} s after the loss`,
    ],
    ["  without fault tolerance", "", deadline.withoutFte.failed, "its query ends with the worker"],
    ["worker", "", "", worker.back ? "came back and ran a task" : "did not come back"],
    [
      "  without cleanup",
      "",
      "",
      worker.backWithoutCleanup ? "came back" : `never came back, begun again ${context.withoutCleanup.restarts} times`,
    ],
    [
      "coordinator",
      "",
      coordinator.lost,
      `${coordinator.explicit} lost with an error of the protocol, ${coordinator.hung} hung; ${swept} of ${left} orphaned folders swept`,
    ],
  );
  return [
    table.toString().replaceAll(/ +$/gm, ""),
    "",
    `queries: ${queries.sent} sent, ${queries.right} right, ${queries.wrong} wrong, ${queries.failed} failed (those that had to fail among them)`,
    `transactions: ${transactions.opened} opened, ${transactions.committed} committed, ${transactions.failed} failed`,
    `level: ${report.level} of a real Trino; the machines under them are simulated; ${report.durationS} s`,
    "",
    report.held ? "Every claim held, and both controls failed." : report.broken.map((each) => `BROKEN: ${each}`).join("\n"),
  ].join("\n");
}
