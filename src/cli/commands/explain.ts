/** `relevo explain POOL|INSTANCE` and `relevo plan POOL`: why. */
import { explanationView, planView, type ExplanationView, type PlanView } from "../../server/views.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { scaleLines } from "./explain-scale.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { ageOf, dash, distanceOf, palette, renderDocument, renderTable } from "../output.ts";

export async function explain(context: CliContext, subject: string, options: GlobalOptions): Promise<ExitCode> {
  const client = connect(context, options);
  const pools = subject.includes("/") ? [] : await client.list("/v1/pools", poolNameView);
  const isPool = subject.includes("/") || pools.some(({ pool }) => pool === poolKeyOf(subject, options.namespace));
  const key = isPool ? poolKeyOf(subject, options.namespace) : subject;
  const explanation = await client.get(`/v1/explain?subject=${encodeURIComponent(key)}`, explanationView);
  context.out(renderDocument(explanation, options.output) ?? textOf(context, explanation));
  return EXIT.done;
}

export async function plan(context: CliContext, pool: string, options: GlobalOptions): Promise<ExitCode> {
  const client = connect(context, options);
  const found = await client.get(`/v1/pools/${poolKeyOf(pool, options.namespace)}/plan`, planView);
  context.out(renderDocument(found, options.output) ?? planText(context, found));
  return EXIT.done;
}

const poolNameView = planView.pick({ pool: true });

/** So that it fits on one screen. */
const STEPS_BESIDE_SCALE = 4;

const WITNESSES = {
  head: "ALSO SAID BY",
  cell: ({ witnesses }: ExplanationView["evidence"][number]): string =>
    dash([...new Set(witnesses.map(({ source }) => source))].join(", ")),
};

function textOf(
  context: CliContext,
  { kind, subject, pool, reasons, podLosses, scale, instance, evidence, steps }: ExplanationView,
): string {
  const { bold, dim } = palette(context);
  const now = context.clock.now();
  const lines = [bold(kind === "pool" ? `pool ${pool}` : `instance ${subject} of pool ${pool}`)];
  if (instance) {
    lines.push(`${instance.phase} for ${ageOf(instance.phaseSince, now)}, health ${instance.health}, on ${dash(instance.node)}`);
    if (instance.drain)
      lines.push(
        `leaves (${instance.drain.loss})${instance.drain.deadline ? `, its node goes ${distanceOf(instance.drain.deadline, now)}` : ""}`,
      );
  }
  if (scale !== undefined) lines.push("", bold("scale"), ...scaleLines(scale, now));
  lines.push("", bold("why"));
  const others = scale === undefined ? reasons : reasons.filter(({ subject: of, code }) => of !== "" || !code.startsWith("scale_"));
  // What is said of the pool itself comes first.
  for (const reason of others.toSorted((a, b) => Number(a.subject !== "") - Number(b.subject !== ""))) {
    const about = reason.subject === "" || reason.subject === subject ? "" : `${reason.subject}: `;
    lines.push(`  ${about}${reason.sentence} ${dim(`(${reason.code}${reason.since ? `, for ${ageOf(reason.since, now)}` : ""})`)}`);
  }
  if (reasons.length === 0)
    lines.push(instance?.phase === "deleted" ? "  it is gone; the evidence and the steps below say why" : "  no reason is recorded yet");
  const lost = Object.entries(podLosses ?? {}).filter(([, pods]) => pods > 0);
  if (lost.length > 0)
    lines.push(
      "",
      `pods lost since the controller began: ${lost.map(([cause, pods]) => `${pods} ${cause.replaceAll("_", " ")}`).join(", ")}`,
    );
  const sections: (readonly [string, string])[] = [];
  if (evidence.length > 0)
    sections.push([
      "evidence",
      renderTable(
        evidence,
        [
          { head: "SEEN", cell: (item) => ageOf(item.firstSeen, now) },
          { head: "INSTANCE", cell: (item) => item.instance },
          { head: "LOSS", cell: (item) => item.loss },
          { head: "REASON", cell: (item) => item.reason },
          { head: "NODE", cell: (item) => dash(item.node?.name) },
          { head: "DEADLINE", cell: (item) => distanceOf(item.deadline, now) },
          ...(evidence.some(({ witnesses }) => witnesses.length > 0) ? [WITNESSES] : []),
        ],
        { now },
      ),
    ]);
  if (steps.length > 0)
    sections.push([
      "steps, newest first",
      renderTable(
        scale === undefined ? steps : steps.slice(0, STEPS_BESIDE_SCALE),
        [
          { head: "BEGAN", cell: (item) => ageOf(item.recordedAt, now) },
          { head: "KIND", cell: (item) => item.kind },
          ...(kind === "pool" ? [{ head: "INSTANCE", cell: (item: (typeof steps)[number]) => dash(item.instance) }] : []),
          { head: "STATE", cell: (item) => item.state },
          { head: "OUTCOME", cell: (item) => dash(item.outcome) },
          { head: "WHY", cell: (item) => item.reason.sentence },
        ],
        { now },
      ),
    ]);
  return `${lines.join("\n")}\n${sections.map(([title, table]) => `\n${bold(title)}\n${indent(table)}`).join("")}`;
}

function planText(context: CliContext, { pool, decisions, holds, nextLookAt }: PlanView): string {
  const { bold, dim } = palette(context);
  const now = context.clock.now();
  const decided = decisions.map(
    ({ kind, subject, detail, reason }) =>
      `  ${[kind, subject, detail].filter(Boolean).join(" ")}: ${reason.sentence} ${dim(`(${reason.code})`)}\n`,
  );
  const ofPoolFirst = holds.toSorted((a, b) => Number(a.subject !== "") - Number(b.subject !== ""));
  const held = ofPoolFirst.map(
    ({ subject, reason, until }) =>
      `  ${subject === "" ? "" : `${subject}: `}${reason.sentence} ${dim(`(${reason.code}${until ? `, again ${distanceOf(until, now)}` : ""})`)}\n`,
  );
  return [
    `${bold(`pool ${pool}`)}\n`,
    decided.length === 0 ? "nothing would be done\n" : `would be done\n${decided.join("")}`,
    held.length === 0 ? "" : `left as it is\n${held.join("")}`,
    nextLookAt === null ? "" : `next look ${distanceOf(nextLookAt, now)}\n`,
  ].join("");
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
