/** The pools, and what of them waits for an operator or was done by one. */
import { bad, type Finding, ok } from "../../model/finding.ts";
import { cordonView, forcedSealView, type PoolView, poolView, stepView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";
import { howToThaw } from "../thaw.ts";

const MAX_STEPS = 1000;

export async function checkPools(client: ControllerClient): Promise<readonly Finding[]> {
  const pools = await client.list("/v1/pools", poolView);
  if (pools.length === 0) return [bad("pools", "warning", "there is none", "npx relevo apply -f pool.yaml")];
  return pools.flatMap((pool) => findingsOfPool(pool));
}

function findingsOfPool({ pool, mode, serving, floor, desired, freeze }: PoolView): readonly Finding[] {
  const check = `pool ${pool}`;
  const findings: Finding[] = [];
  if (serving < floor) findings.push(bad(check, "refused", `${serving} serve and its floor is ${floor}`, `npx relevo explain ${pool}`));
  else if (serving < desired)
    findings.push(bad(check, "warning", `${serving} serve and ${desired} are desired`, `npx relevo explain ${pool}`));
  if (freeze) findings.push(bad(check, "held", `frozen until ${freeze.until} by ${freeze.by}: ${freeze.why}`, howToThaw(pool, freeze)));
  if (mode !== "Act")
    findings.push(
      bad(check, "warning", `disruption.mode is ${mode}: no instance is replaced before its node goes`, "set spec.disruption.mode to Act"),
    );
  return findings.length > 0 ? findings : [ok(check, `${serving} of ${desired} serve, mode ${mode}`)];
}

export async function checkCordons(client: ControllerClient): Promise<readonly Finding[]> {
  const cordons = await client.list("/v1/cordons", cordonView);
  if (cordons.length === 0) return [ok("own cordons", "none")];
  return cordons.map(({ node, evidence }) =>
    bad(
      "own cordon",
      "warning",
      `${node} is cordoned by Relevo${evidence === null ? "" : ` for evidence ${evidence}`}`,
      `when it shall be used again: npx relevo uncordon ${node}`,
    ),
  );
}

export async function checkSteps(client: ControllerClient): Promise<readonly Finding[]> {
  const total = (await client.list("/v1/pools", poolView)).reduce((sum, { heldSteps }) => sum + heldSteps, 0);
  const held = (await client.list(`/v1/steps?limit=${MAX_STEPS}`, stepView)).filter(({ state }) => state === "held");
  if (held.length === 0 && total === 0) return [ok("held steps", "none")];
  if (held.length < total)
    return [bad("held steps", "held", `${total}, some older than the last ${MAX_STEPS} steps`, "see relevo get steps --pool POOL")];
  return held.map(({ id, kind, instance, reason }) =>
    bad(
      "held step",
      "held",
      `${kind} ${id} of ${instance ?? "its pool"}: ${reason.sentence}`,
      `look at its object; nobody can tell whether it happened: npx relevo release ${id} --reason WHY, and it is decided anew`,
    ),
  );
}

/** Exceptions that an operator made: named until they are closed. */
export async function checkForcedSeals(client: ControllerClient): Promise<readonly Finding[]> {
  const seals = await client.list("/v1/forced-seals", forcedSealView);
  return seals.map(({ instance, pool, by, why, until, obligations, phase }) =>
    bad(
      "forced seal",
      "warning",
      `${instance} of ${pool} (${phase}) by ${by}: ${why}; ${obligations ?? "unknown"} requests and sessions were given up`,
      `look after what was lost; it is named until the instance is gone and ${until} is over`,
    ),
  );
}
