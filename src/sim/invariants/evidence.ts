import type { Evidence } from "../../model/evidence.ts";
import type { Checker } from "./checker.ts";

/** Watches: every reading of a pool's rows. */
export function evidenceIsImmutable(): Checker {
  const first = new Map<string, string>();
  const byClass = new Map<string, string>();
  return {
    id: "I3",
    rule: "recorded evidence never changes",
    watches: ["rows_read"],
    on(event, { violate }) {
      if (event.type !== "rows_read") return;
      for (const evidence of event.rows.evidence) {
        const text = fingerprint(evidence);
        const known = first.get(evidence.id);
        if (known === undefined) first.set(evidence.id, text);
        else if (known !== text) violate(`evidence ${evidence.id} was ${known} and is ${text}`);
        const key = `${evidence.instance} ${evidence.loss}`;
        const other = byClass.get(key);
        if (other === undefined) byClass.set(key, evidence.id);
        else if (other !== evidence.id) violate(`${key} has evidence ${other} and ${evidence.id}`);
      }
      const living = new Set(event.rows.instances.map(({ id }) => id));
      const present = new Set(event.rows.evidence.map(({ id }) => id));
      for (const [key, id] of byClass) {
        const [instance = ""] = key.split(" ");
        if (living.has(instance) && !present.has(id)) violate(`evidence ${id} of ${instance} is gone`);
      }
    },
  };
}

function fingerprint(evidence: Evidence): string {
  return JSON.stringify(Object.entries(evidence).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
