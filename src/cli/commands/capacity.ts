/** `relevo get capacity`: how well capacity is, place by place, and what could take over. */
import { formatDuration } from "../../kernel/units.ts";
import { type CapacityViewJson, capacityView } from "../../server/views.ts";
import { connect } from "../client.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { type Column, dash, distanceOf, renderDocument, renderTable } from "../output.ts";
import type { GetOptions } from "./get.ts";

type Spot = CapacityViewJson["spots"][number];
type Supply = CapacityViewJson["supplies"][number];

const SPOTS: readonly Column<Spot>[] = [
  { head: "SITE", cell: ({ site }) => site },
  { head: "ZONE", cell: ({ zone }) => dash(zone) },
  { head: "TYPE", cell: ({ instanceType }) => dash(instanceType) },
  { head: "CAPACITY", cell: ({ capacityType }) => dash(capacityType) },
  { head: "HEAT", cell: ({ heat, hot }) => `${heat.toFixed(2)}${hot ? " hot" : ""}` },
  { head: "MACHINES", cell: ({ machines }) => String(machines) },
  { head: "LOST", cell: ({ losses }) => String(losses) },
  { head: "REFUSED", cell: ({ failedLaunches }) => String(failedLaunches) },
  { head: "LAUNCHED", wide: true, cell: ({ launches }) => String(launches) },
  { head: "LAST LOSS", wide: true, cell: ({ lastLossAt }, now) => distanceOf(lastLossAt, now) },
  { head: "LAST REFUSAL", wide: true, cell: ({ lastFailureAt }, now) => distanceOf(lastFailureAt, now) },
];

/** Beyond any fleet: nobody says that there is an end. */
const MANY = 1_000_000;

const SUPPLIES: readonly Column<Supply>[] = [
  { head: "SUPPLY", cell: ({ id }) => id },
  { head: "KIND", cell: ({ kind }) => kind },
  { head: "FREE", cell: ({ free }) => (free >= MANY ? "unknown" : String(free)) },
  { head: "RESERVED", cell: ({ reserved }) => String(reserved) },
  { head: "READY IN", cell: ({ readyInMs }) => readyIn(readyInMs) },
  { head: "PREEMPTIBLE", wide: true, cell: ({ preemptible }) => String(preemptible) },
  { head: "BOUND BY", wide: true, cell: ({ boundBy }) => dash(boundBy) },
];

export async function capacity(context: CliContext, name: string | undefined, options: GetOptions): Promise<ExitCode> {
  const unused = name !== undefined ? "a name" : options.watch ? "--watch" : options.pool === undefined ? undefined : "--pool";
  if (unused !== undefined)
    throw new UsageError("capacity_is_whole", "Capacity is shown as a whole.", { found: unused, allowed: "relevo get capacity" });
  const view = await connect(context, options).get("/v1/capacity", capacityView);
  const now = context.clock.now();
  const isWide = options.output === "wide";
  context.out(
    renderDocument(view, options.output) ??
      [
        view.spots.length === 0 ? "no machine was seen yet\n" : renderTable(view.spots, SPOTS, { now, isWide }),
        renderTable(view.supplies, SUPPLIES, { now, isWide }),
        `${sentences(view)
          .map((sentence) => `${sentence}\n`)
          .join("")}`,
      ].join("\n"),
  );
  return EXIT.done;
}

function sentences({ placement, quotas, absorption, prediction }: CapacityViewJson): readonly string[] {
  const { avoid, capacityType } = placement;
  const away = [
    ...(avoid.zones.length === 0 ? [] : [`away from ${avoid.zones.join(", ")}`]),
    ...(avoid.instanceTypes.length === 0 ? [] : [`not on ${avoid.instanceTypes.join(", ")}`]),
    ...(avoid.nodes.length === 0 ? [] : [`not on ${avoid.nodes.join(", ")}`]),
    ...(capacityType === null ? [] : [`on ${capacityType} capacity`]),
  ];
  return [
    `what is made now goes ${away.length === 0 ? "anywhere" : away.join(", ")}`,
    ...quotas.map(({ nodePool, limit, machines }) => `NodePool ${nodePool}: ${machines} of ${limit ?? "any number of"} machines`),
    `${absorption.site} absorbs ${round(absorption.perSecond)} a second and ${round(absorption.burst)} at once; ${round(absorption.tokens)} now`,
    ...(prediction === null
      ? []
      : [
          `of ${prediction.of} that must go ${prediction.beforeDeadline} will serve before their deadline, ${prediction.within} within ${formatDuration(prediction.withinMs)}${prediction.bottleneck === null ? "" : `: ${prediction.bottleneck}`}`,
        ]),
  ];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Tenths count only for what is ready at once. */
function readyIn(ms: number): string {
  if (ms === 0) return "0s";
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(Math.round(ms / 1_000) * 1_000);
}
