/** `relevo storm --nodes N`: many nodes of the embedded cluster go at once, each announced as a cloud would. */
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { parseDuration } from "../../kernel/units.ts";
import { PRIORITIES, type Priority } from "../../model/membership.ts";
import { type NodeView, nodeView } from "../../server/views.ts";
import { type ControllerClient, connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { type Column, renderDocument, renderTable } from "../output.ts";
import { readRunFile } from "../run-file.ts";
import type { ClassOutcome } from "../storm/evacuation.ts";
import { type FollowedStorm, StormFollower } from "../storm/follow.ts";
import { composeNotice } from "./notify.ts";

export const STORM_KINDS = ["interrupt", "drift", "kill"] as const;

export interface StormOptions extends GlobalOptions {
  readonly nodes: string;
  readonly kind: (typeof STORM_KINDS)[number];
  readonly deadline: string;
  readonly admin?: string;
  /** Commander's form of `--no-notice`. */
  readonly notice: boolean;
  /** Follows it to its end and says what came of it. */
  readonly wait?: boolean;
}

const interruption = z.object({ instanceId: z.string() });
const TIMEOUT_MS = 15_000;

export async function storm(context: CliContext, options: StormOptions): Promise<ExitCode> {
  const count = Number(options.nodes);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new UsageError("nodes_invalid", "--nodes is not valid.", { found: options.nodes, allowed: "a whole number of at least 1" });
  const deadlineMs = parseDuration(options.deadline);
  if (deadlineMs === undefined)
    throw new UsageError("duration_invalid", "--deadline is not valid.", {
      found: options.deadline,
      allowed: "a duration such as 20s or 2m",
    });
  const admin = options.admin ?? readRunFile(context.cwd)?.adminUrl;
  if (!admin)
    throw new RelevoError("no_embedded_cluster", "No embedded cluster is known here: only its nodes can be made to go.", {
      todo: "start one with npx relevo up, or name its admin interface with --admin",
    });
  const client = connect(context, options);
  const chosen = chooseNodes(await client.list("/v1/nodes", nodeView), count);
  const follower = options.wait ? new StormFollower(client, context.clock) : undefined;
  await follower?.begin(chosen);
  const results = await Promise.all(
    chosen.map(async (node) => {
      const answer = await command(
        context,
        `${admin}/embedded/v1/nodes/${encodeURIComponent(node.name)}/${options.kind}`,
        options.kind === "interrupt" ? { deadlineMs } : {},
      );
      const notice = options.kind === "interrupt" && options.notice ? await announce(context, client, answer) : null;
      return { node: node.name, kind: options.kind, instances: node.instances, notice };
    }),
  );
  const told = results.map(
    ({ node, kind, instances, notice }) =>
      `${node} ${kind}${notice ? `, noticed as ${notice}` : ""}${instances.length > 0 ? `, carries ${instances.join(", ")}` : ""}\n`,
  );
  if (follower === undefined) {
    context.out(renderDocument({ items: results }, options.output) ?? told.join(""));
    return EXIT.done;
  }
  const isTable = options.output !== "json" && options.output !== "yaml";
  if (isTable) context.out(told.join(""));
  const outcome = await follower.end(options.kind === "interrupt" ? deadlineMs : 0, context.signal);
  context.out(renderDocument({ items: results, ...outcome }, options.output) ?? rendered(outcome, context.clock.now()));
  return outcome.held ? EXIT.done : EXIT.failed;
}

function rendered({ classes, order, unsavable, requests, held }: FollowedStorm, now: number): string {
  const rows = PRIORITIES.map((priority) => ({ priority, ...classes[priority] }));
  return [
    "\n",
    renderTable(rows, OUTCOME, { now }),
    `\nin this order: ${order || "nobody"}\n`,
    ...unsavable.map((sentence) => `unsavable: ${sentence}\n`),
    `requests meanwhile: ${requests.accepted} accepted, ${requests.rejected} rejected, ${requests.cut} cut, ${requests.retried} retried\n`,
    held ? "everybody who was announced has moved, and nothing was lost\n" : "not everybody has moved without loss\n",
  ].join("");
}

const seconds = (ms: number | null): string => (ms === null ? "-" : `${(ms / 1000).toFixed(1)}s`);

const OUTCOME: readonly Column<ClassOutcome & { readonly priority: Priority }>[] = [
  { head: "CLASS", cell: ({ priority }) => priority },
  { head: "NOTICED", cell: ({ noticed }) => String(noticed) },
  { head: "REPLACED", cell: ({ replaced }) => String(replaced) },
  { head: "BY STANDBY", cell: ({ byStandby }) => String(byStandby) },
  { head: "LOST", cell: ({ forced }) => String(forced) },
  { head: "MEAN", cell: ({ meanMs }) => seconds(meanMs) },
  { head: "LAST", cell: ({ lastMs }) => seconds(lastMs) },
];

/** Those that carry most first: a storm that hits nothing shows nothing. */
function chooseNodes(nodes: readonly NodeView[], count: number): readonly NodeView[] {
  const able = nodes.filter(({ ready, deleting }) => ready && !deleting);
  if (able.length < count)
    throw new UsageError("too_few_nodes", `There are not ${count} nodes that could go.`, {
      found: able.length,
      todo: `use --nodes ${able.length} or fewer`,
    });
  return able.toSorted((a, b) => b.instances.length - a.instances.length || (a.name < b.name ? -1 : 1)).slice(0, count);
}

async function announce(context: CliContext, client: ControllerClient, answer: unknown): Promise<string | null> {
  const { instanceId } = interruption.parse(answer);
  const { accepted } = await client.notify("eventbridge", composeNotice(context, "spot-interruption", instanceId));
  return accepted[0] ?? null;
}

async function command({ fetch, clock }: CliContext, url: string, body: unknown): Promise<unknown> {
  const controller = new AbortController();
  const timer = clock.after(TIMEOUT_MS, () => controller.abort());
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: controller.signal,
    });
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    const { code, message } = answer as { readonly code?: string; readonly message?: string };
    throw new RelevoError(code ?? "cluster_refused", message ?? `The embedded cluster answered ${response.status}.`, { found: url });
  } catch (cause) {
    if (cause instanceof RelevoError) throw cause;
    throw new RelevoError("cluster_unreachable", "The embedded cluster's admin interface does not answer.", {
      found: url,
      cause,
      todo: "see npx relevo doctor",
    });
  } finally {
    timer.cancel();
  }
}
