/**
 * Whether a Pool's size could be left to Relevo, found out before it is (K1, K2, K3, K8): for each of its sites whether the signal is there, whether the credentials
 * are good (one real call through that site's own connection), whether what it tells is the pool's own flow and a number; and who else sets the count. Changes nothing.
 */
import type { Clock } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import type { KubeApi } from "../../kube/api.ts";
import { type Connections, findSignal } from "../../demand/availability.ts";
import type { Connection } from "../../demand/connections.ts";
import type { DemandAdapter } from "../../demand/port.ts";
import type { DemandAdapters } from "../../demand/registry.ts";
import { judgeReading, type Trouble, troubleOfError } from "../../demand/validity.ts";
import type { DemandReading, SignalSpec } from "../../model/demand.ts";
import type { PoolDocument } from "../../model/pool.ts";
import type { PreflightRow } from "../../model/preflight.ts";
import type { ScalePolicy } from "../../model/scale.ts";
import { checkOwner } from "./owners.ts";
import type { TrinoPreflightParts } from "./trino/ports.ts";
import { preflightTrino } from "./trino/preflight.ts";

/** An answer that is later than this is none. */
const READ_LIMIT_MS = 10_000;

export interface PreflightParts {
  readonly connections: Connections;
  readonly adapters: DemandAdapters;
  readonly kube: Pick<KubeApi, "get" | "list">;
  readonly clock: Clock;
  /** How Trino's own checks ask beside the document; absent: their lines are held. */
  readonly trino?: Omit<TrinoPreflightParts, "kube">;
}

/** By site in the document's order; a pool whose size follows nothing has one row that says so. */
export async function preflight(document: PoolDocument, parts: PreflightParts): Promise<readonly PreflightRow[]> {
  const trino = await preflightTrino(document, { kube: parts.kube, ...parts.trino });
  return [...(await preflightSize(document, parts)), ...trino];
}

async function preflightSize(document: PoolDocument, parts: PreflightParts): Promise<readonly PreflightRow[]> {
  const { sites, scale } = document.spec;
  if (scale === undefined)
    return sites.map((site) => row(site, "signal", "ok", "its size follows nothing: spec.size.desired is all", null));
  const rows = await Promise.all(sites.map((site) => checkSite(document, scale, site, parts)));
  const owner = await checkOwner(document, parts.kube);
  return [...rows.flat(), { site: sites.join(", "), check: "owner", ...owner }];
}

const row = (
  site: string,
  check: PreflightRow["check"],
  state: PreflightRow["state"],
  message: string,
  todo: string | null,
): PreflightRow => ({ site, check, state, message, todo });

async function checkSite(
  document: PoolDocument,
  scale: ScalePolicy,
  site: string,
  parts: PreflightParts,
): Promise<readonly PreflightRow[]> {
  const { namespace } = document.metadata;
  const found = findSignal(scale.signal, { namespace, sites: [site] }, parts.connections, parts.adapters);
  if ("missing" in found)
    return [
      row(
        site,
        "signal",
        "refused",
        found.missing,
        "give the controller a connection that exists there, or take the site out of spec.sites",
      ),
    ];
  const { adapter, connection } = found;
  const signal = row(site, "signal", "ok", describe(scale.signal, connection, adapter), null);
  const answer = await readOnce(scale.signal, namespace, found, parts);
  if ("trouble" in answer) return [signal, ...refusalOf(site, answer.trouble, adapter)];
  const judged = judgeReading(answer.reading, {
    flow: document.spec.worker.flow ?? null,
    maxAgeMs: scale.maxAge,
    former: null,
    at: parts.clock.monotonic(),
  });
  const rows = [signal, row(site, "credentials", "ok", `one real call was answered in ${formatDuration(answer.ms)}`, null)];
  if (!("trouble" in judged))
    return [
      ...rows,
      row(site, "flow", "ok", answer.reading.flow, null),
      row(site, "value", "ok", `${answer.reading.backlog} wait${takenOf(answer.reading)}`, null),
    ];
  const { code, detail } = judged.trouble;
  if (code === "other_flow")
    return [
      ...rows,
      row(
        site,
        "flow",
        "refused",
        detail,
        "name the workers' own queue, group or subscription in spec.scale.signal, or correct spec.worker.flow",
      ),
    ];
  return [
    ...rows,
    row(site, "value", "refused", detail, "correct what the signal asks for: a value that cannot be believed scales nothing"),
  ];
}

function takenOf({ inFlight }: DemandReading): string {
  return inFlight === null ? "" : `, ${inFlight} are taken`;
}

function describe(signal: SignalSpec, connection: Connection | undefined, { needs }: DemandAdapter): string {
  return connection === undefined
    ? `${signal.kind} (${needs.infrastructure})`
    : `${signal.kind} through ${connection.name} (${needs.infrastructure})`;
}

async function readOnce(
  signal: SignalSpec,
  namespace: string,
  { adapter, connection }: { readonly adapter: DemandAdapter; readonly connection: Connection | undefined },
  { clock, kube }: PreflightParts,
): Promise<{ readonly reading: DemandReading; readonly ms: number } | { readonly trouble: Trouble }> {
  const controller = new AbortController();
  const timer = clock.after(READ_LIMIT_MS, () => controller.abort());
  const startedAt = clock.monotonic();
  try {
    const source = adapter.open(signal as never, connection, { clock, kube, namespace });
    try {
      const reading = await source.read(controller.signal);
      return { reading, ms: Math.round(clock.monotonic() - startedAt) };
    } finally {
      await source.close();
    }
  } catch (error) {
    if (controller.signal.aborted) return { trouble: { code: "unreachable", detail: `no answer within ${formatDuration(READ_LIMIT_MS)}` } };
    return { trouble: troubleOfError(error) };
  } finally {
    timer.cancel();
  }
}

/** What a call that failed says of which check. */
function refusalOf(site: string, { code, detail }: Trouble, { needs }: DemandAdapter): readonly PreflightRow[] {
  switch (code) {
    case "credentials_refused":
      return [
        row(site, "credentials", "refused", detail, `give this site's connection a credential that may: ${needs.permissions.join("; ")}`),
      ];
    case "unreachable":
    case "not_available":
      return [row(site, "signal", "refused", detail, `make it reachable from the controller: ${needs.infrastructure}`)];
    default:
      return [
        row(site, "credentials", "ok", "one real call was answered", null),
        row(site, "value", "refused", detail, "make the source tell it: a value that is missing scales nothing"),
      ];
  }
}
