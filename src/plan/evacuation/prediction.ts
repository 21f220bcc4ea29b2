/** What the schedule promises, and what holds it back. */
import type { Book } from "./book.ts";
import { rate } from "./missing.ts";
import type { Mover } from "./movers.ts";
import type { Grant, Prediction } from "./types.ts";

/** An evacuation is meant to be over so long after the notice (S9) … */
export const WITHIN_MS = 90_000;
/** … for this share of them. */
export const TARGET_SHARE = 0.98;

/** `movers` are those of the grants, in the same order. */
export function predict(movers: readonly Mover[], grants: readonly Grant[], book: Book): Prediction {
  let within = 0;
  let beforeDeadline = 0;
  let breaches = 0;
  for (const [index, grant] of grants.entries()) {
    const mover = movers[index];
    const placement = grant.kind === "unsavable" ? grant.late : grant;
    if (!mover || placement === null) continue;
    if (placement.breach) breaches += 1;
    if (placement.servingAt - mover.evacuee.noticedAt <= WITHIN_MS) within += 1;
    if (placement.servingAt <= mover.deadline) beforeDeadline += 1;
  }
  const of = movers.length;
  const attainable = within >= Math.ceil(of * TARGET_SHARE - 1e-9);
  const bottleneck = attainable ? null : bottleneckOf(grants, within, of, book);
  return { withinMs: WITHIN_MS, within, beforeDeadline, of, breaches, attainable, bottleneck };
}

function bottleneckOf(grants: readonly Grant[], within: number, of: number, book: Book): string {
  const without = grants.filter((grant) => grant.kind === "unsavable" && grant.late === null).length;
  const share = `${within} of ${of} within ${WITHIN_MS / 1_000} s, ${TARGET_SHARE * 100} % is unattainable`;
  const sites = book.lanes.map(({ site, perSecond }) => `${site} absorbs ${rate(perSecond)}`);
  if (without > of * (1 - TARGET_SHARE)) return `${share}: ${without} have no place`;
  return `${share}: ${sites.slice(0, 8).join(", ")}`;
}
