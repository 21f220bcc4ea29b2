/** Everything about the cluster that Relevo's claims rest on, looked at once: the controller's part of `relevo doctor`. Changes nothing. */
import { describeError } from "../../kernel/errors.ts";
import { bad, type Finding } from "../../model/finding.ts";
import type { ClusterFacts } from "./facts.ts";
import { checkDefinitions, checkKarpenter } from "./karpenter.ts";
import { checkOwners, checkOwnPlace } from "./nodes.ts";
import { checkActors, checkScalers } from "./others.ts";
import { checkPermissions } from "./permissions.ts";
import { checkServerClock, checkStoreKind, checkVersions } from "./surroundings.ts";

const CHECKS: Readonly<Record<string, (facts: ClusterFacts) => Promise<readonly Finding[]>>> = {
  "store kind": checkStoreKind,
  versions: checkVersions,
  "server clock": checkServerClock,
  definitions: checkDefinitions,
  permissions: checkPermissions,
  karpenter: checkKarpenter,
  nodes: checkOwners,
  "own place": checkOwnPlace,
  "other actors": checkActors,
  "other scalers": checkScalers,
};

/** One that fails is a finding, and the others still tell. */
export async function examineCluster(facts: ClusterFacts): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      findings.push(...(await check(facts)));
    } catch (error) {
      findings.push(bad(name, "warning", `could not be looked at: ${describeError(error)}`, "see the controller's log, and ask again"));
    }
  }
  return findings;
}

/** Several who ask at once get one answer. */
export function examineOnce(facts: ClusterFacts): () => Promise<readonly Finding[]> {
  let running: Promise<readonly Finding[]> | undefined;
  return () => {
    running ??= examineCluster(facts).finally(() => {
      running = undefined;
    });
    return running;
  };
}
