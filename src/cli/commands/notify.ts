/** `relevo notify`: sends a notice as a cloud does, through the same door. */
import { RelevoError } from "../../kernel/errors.ts";
import { rebalanceRecommendation, spotInterruptionWarning, stateChange } from "../../notices/eventbridge/compose.ts";
import { nodeView, type ReceiptView } from "../../server/views.ts";
import { type ControllerClient, connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";

export const NOTICE_KINDS = ["spot-interruption", "rebalance", "state-change"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

export interface NotifyOptions extends GlobalOptions {
  readonly kind: NoticeKind;
  readonly node?: string;
  readonly state: string;
  /** The same id again is a duplicate. */
  readonly id?: string;
}

export async function notify(context: CliContext, machine: string | undefined, options: NotifyOptions): Promise<ExitCode> {
  if ((machine === undefined) === (options.node === undefined))
    throw new UsageError("notify_target", "Name a machine, or a node with --node.", {
      todo: "relevo notify i-0123456789abcdef0, or relevo notify --node NAME",
    });
  const client = connect(context, options);
  const machineId = machine ?? (await machineOf(client, options.node ?? ""));
  const body = composeNotice(context, options.kind, machineId, options);
  const receipt = await client.notify("eventbridge", body);
  context.out(
    renderDocument({ machine: machineId, kind: options.kind, ...receipt }, options.output) ??
      `${options.kind} for ${machineId}: ${sentenceOf(receipt)}\n`,
  );
  return EXIT.done;
}

export function composeNotice(
  { clock, ids }: Pick<CliContext, "clock" | "ids">,
  kind: NoticeKind,
  machineId: string,
  { id = ids.next("notice"), state = "stopping" }: { readonly id?: string; readonly state?: string } = {},
): string {
  const event = { id, at: clock.now(), machineId };
  switch (kind) {
    case "spot-interruption":
      return spotInterruptionWarning(event);
    case "rebalance":
      return rebalanceRecommendation(event);
    case "state-change":
      return stateChange(event, state);
    default:
      return kind satisfies never;
  }
}

async function machineOf(client: ControllerClient, name: string): Promise<string> {
  const nodes = await client.list("/v1/nodes", nodeView);
  const node = nodes.find((each) => each.name === name);
  if (node === undefined)
    throw new RelevoError("node_not_found", `There is no node ${name}.`, {
      found: name,
      allowed: nodes.map((each) => each.name).join(", ") || "no node is known",
    });
  if (node.machine === null)
    throw new RelevoError("node_without_machine", `Node ${name} has no machine id.`, { todo: "name the machine itself" });
  return node.machine;
}

function sentenceOf({ accepted, duplicates, ignored }: ReceiptView): string {
  if (accepted.length > 0) return `accepted as ${accepted.join(", ")}`;
  return duplicates.length > 0
    ? `a duplicate of what was received already (${duplicates.join(", ")})`
    : `understood, and of no concern (${ignored.join(", ")})`;
}
