/** Which catalogs can retry: fault tolerance is a matter of each connector. */
import type { RetryPolicy } from "../../../model/trino.ts";
import { fine, found, type Judgement, type PodPlan } from "./facts.ts";

/** Those that can also write under a retry policy, as Trino's documentation says. */
const WRITES = new Set([
  "bigquery",
  "blackhole",
  "delta_lake",
  "hive",
  "iceberg",
  "mariadb",
  "mongodb",
  "mysql",
  "oracle",
  "postgresql",
  "redshift",
  "sqlserver",
]);
/** Their data or splits are bound to one node: what died with it comes back only at the same host and port. */
const BOUND = new Set(["memory", "tpch", "tpcds", "system", "jmx", "localfile"]);

export function judgeConnectors(plans: readonly PodPlan[], retryPolicy: RetryPolicy): Judgement {
  const catalogs = new Map<string, string>();
  for (const { files } of plans)
    for (const [file, settings] of files) {
      const name = /^catalog\/(.+)\.properties$/.exec(file)?.[1];
      if (name !== undefined) catalogs.set(name, (settings.get("connector.name") ?? "").replaceAll("-", "_"));
    }
  if (retryPolicy === "NONE") return fine("no retry policy is declared: a lost worker fails its queries");
  if (catalogs.size === 0)
    return found("held", "no catalog is in the blueprint's ConfigMaps", "see which connectors it has, and whether each can retry");
  const troubles = [...catalogs].flatMap(([catalog, connector]) => {
    if (BOUND.has(connector))
      return [`${catalog} (${connector}): its splits are bound to their node, and a query hangs after the loss of that node`];
    return WRITES.has(connector) ? [] : [`${catalog} (${connector}): what writes there fails under a retry policy`];
  });
  return troubles.length === 0
    ? fine(`each can retry: ${[...catalogs.keys()].join(", ")}`)
    : found("warning", troubles.join("; "), "keep what must survive on the other catalogs, or set retry_policy NONE for such queries");
}
