/** Nothing is taken over that its preflight refuses at any of its sites (K1, K2, K8). */
import { RelevoError } from "../kernel/errors.ts";
import type { PoolDocument } from "../model/pool.ts";
import type { PreflightRow } from "../model/preflight.ts";

export type Preflight = (document: PoolDocument) => Promise<readonly PreflightRow[]>;

/** Who owns the count is not asked here: to take it over is what is wanted. Throws `preflight_refused`. */
export async function refuseByPreflight(preflight: Preflight | undefined, pool: string, document: PoolDocument): Promise<void> {
  const rows = (await preflight?.(document)) ?? [];
  const refused = rows.filter(({ check, state }) => state === "refused" && check !== "owner");
  const [first] = refused;
  if (first === undefined) return;
  throw new RelevoError("preflight_refused", `pool ${pool} does not pass its preflight, so nothing is taken over`, {
    class: "conflict",
    found: refused.map(({ site, check, message }) => `${site}, ${check}: ${message}`).join("; "),
    allowed: "every check of relevo check ok at each site",
    todo: first.todo ?? "see npx relevo check",
  });
}
