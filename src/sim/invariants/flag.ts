import { POOLS } from "../../kube/resources.ts";
import type { KubeObject } from "../../kube/api.ts";
import { poolKey } from "../../model/pool.ts";
import type { Checker } from "./checker.ts";

/** What was decided just before the flag was heard of may still be written down. */
const UNDER_WAY_MS = 2_000;

/** Watches: what the controller has heard of its pool's flag, and what it commits afterwards. Repairs of what is lost are no disruption (D12). */
export function flagOffMeansNoMutation(): Checker {
  /** By pool. */
  const heard = new Map<string, Map<string, { readonly mode: string; readonly since: number }>>();
  const hear = (process: string, object: KubeObject, now: number): void => {
    const mode = (object["spec"] as { readonly disruption?: { readonly mode?: string } } | undefined)?.disruption?.mode ?? "Off";
    const pool = poolKey(object.metadata.namespace ?? "", object.metadata.name);
    const byProcess = heard.get(pool) ?? new Map<string, { readonly mode: string; readonly since: number }>();
    heard.set(pool, byProcess);
    if (byProcess.get(process)?.mode !== mode) byProcess.set(process, { mode, since: now });
  };
  /** What reached it while it stood still it hears only now. */
  const goesOn = (process: string, now: number): void => {
    for (const byProcess of heard.values()) {
      const flag = byProcess.get(process);
      if (flag !== undefined) byProcess.set(process, { ...flag, since: now });
    }
  };
  return {
    id: "I26",
    rule: "flag off, no mutation",
    watches: ["watch_line", "listed", "went_on", "committed"],
    on(event, { truth, violate }) {
      const now = truth.now();
      if (event.type === "listed" && event.of.plural === POOLS.plural) for (const item of event.items) hear(event.process, item, now);
      if (event.type === "watch_line" && event.of.plural === POOLS.plural && "object" in event.line)
        hear(event.process, event.line.object, now);
      if (event.type === "went_on") goesOn(event.process, now);
      if (event.type !== "committed") return;
      const flag = heard.get(event.authority.pool)?.get(event.process);
      if (flag?.mode !== "Off" || event.askedAt - flag.since < UNDER_WAY_MS) return;
      for (const change of event.changes) {
        if (change.kind === "record_evidence" && change.evidence.loss !== "forced" && change.evidence.reason !== "operator_drain")
          violate(`evidence ${change.evidence.reason} is recorded`);
        if (change.kind === "record_step" && /^(cordon_node|protect_pod|unprotect_pod)\//.test(change.step.kind))
          violate(`${change.step.id} is recorded`);
      }
    },
  };
}
