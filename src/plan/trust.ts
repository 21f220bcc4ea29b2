/** Whether an instance's process is believed: suspect while its check fails, fenced once it is given up. Trust belongs to the incarnation. */
import { reason } from "../model/reasons.ts";
import type { Draft } from "./draft.ts";
import type { InstanceSnapshot } from "./snapshot.ts";
import { idOf } from "./view.ts";

export function planTrust(instance: InstanceSnapshot, draft: Draft): void {
  const { record, health } = instance;
  if (record.phase !== "admitted" && record.phase !== "serving" && record.phase !== "draining") return;
  if (record.trust === "fenced") return;
  const isLost = instance.evidence.some(({ loss }) => loss === "forced");
  const wanted = isLost ? "fenced" : health.state === "failing" ? "suspect" : health.state === "passing" ? "ok" : record.trust;
  if (wanted === record.trust) return;
  draft.decide({
    kind: "trust",
    instance: idOf(instance),
    incarnation: record.incarnation.number,
    from: record.trust,
    to: wanted,
    reason: reason(wanted === "fenced" ? "process_lost" : wanted === "suspect" ? "check_failing" : "check_passing", {
      code: health.state === "failing" ? health.code : "",
    }),
  });
}
