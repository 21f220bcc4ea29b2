import type { PoolSnapshot } from "../../plan/snapshot.ts";
import { isRouted } from "../../model/phase.ts";
import type { MirroredInstance } from "../mirror.ts";
import type { Checker } from "./checker.ts";

/** Well below the shortest time after which a process counts as unreachable: what is condemned within it failed together. */
const TOGETHER_MS = 3_000;
/** Somebody else may have seen so for so long what was wrong. */
const WITNESSED_MS = 30_000;

/** Watches: processes that are condemned as unreachable although they are well and everybody but the controller reaches them. */
export function oneObserverCondemnsNoMajority(): Checker {
  const mistaken: { readonly at: number; readonly instance: string }[] = [];
  let blindAt = Number.NEGATIVE_INFINITY;
  return {
    id: "D12/brake",
    rule: "when more than half of all instances fail the controller's check at once and nobody else's, none is condemned for it",
    // Requests are counted also while the controller stands still, and a gateway may be blind just then.
    watches: ["rows_read", "committed", "counted"],
    on(event, { mirror, truth, violate }) {
      const now = truth.now();
      if (truth.isGatewayBlind()) blindAt = now;
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "record_evidence" || change.evidence.reason !== "process_unreachable") continue;
        const { instance, podName } = change.evidence;
        const process = truth.processes().find((each) => each.podName === podName);
        const known = mirror.get(instance);
        const isAlone = now - blindAt > WITNESSED_MS && known?.evidence.size === 0 && isWatched(known);
        // Another process in the same pod is no proof that the one that is given up was well.
        const isSame = (known?.bootId ?? process?.bootId) === process?.bootId;
        if (!process?.isWell || !process.answers || !isAlone || !isSame) continue;
        while (mistaken[0] !== undefined && mistaken[0].at < now - TOGETHER_MS) mistaken.shift();
        mistaken.push({ at: now, instance });
        const watched = mirror.living().filter(isWatched).length;
        const count = new Set(mistaken.map((each) => each.instance)).size;
        if (count > watched / 2) violate(`${count} of ${watched} are condemned as unreachable, the last ${instance}, and they are well`);
      }
    },
  };
}

/** A candidate's failures are counted otherwise. */
function isWatched({ phase }: MirroredInstance): boolean {
  return isRouted(phase) || phase === "draining";
}

/** Longer than any fault of the mix that hides the loss of a process, and than its own silence when nothing is lost. */
const FOUND_WITHIN_MS = 45_000;

/** Watches: every plan. What has not answered anybody for long is known to be lost, unless the observer doubts itself. */
export function lostProcessesAreFound(): Checker {
  const silentSince = new Map<string, number>();
  return {
    id: "D12/lost",
    rule: "a process that is lost is found to be",
    watches: ["planned"],
    on(event, { truth, violate }) {
      if (event.type !== "planned") return;
      const { snapshot, plan } = event;
      const now = truth.now();
      const answering = new Set(truth.processes().flatMap(({ bootId, answers }) => (answers ? [bootId] : [])));
      for (const { record, evidence, newIncarnation } of snapshot.instances) {
        const { bootId } = record.incarnation;
        if (bootId === null || record.phase !== "serving" || newIncarnation !== null || evidence.some(({ loss }) => loss === "forced"))
          continue;
        if (answering.has(bootId)) silentSince.delete(bootId);
        else silentSince.set(bootId, silentSince.get(bootId) ?? now);
        const isFound = plan.decisions.some((each) => each.kind === "record_evidence" && each.evidence.instance === record.id);
        if (isFound || isDoubtful(snapshot, event.at) || now - (silentSince.get(bootId) ?? now) < FOUND_WITHIN_MS) continue;
        silentSince.set(bootId, now);
        violate(`${record.id} has answered nobody for ${FOUND_WITHIN_MS} ms and counts as serving`);
      }
    },
  };
}

function isDoubtful({ brake, leaseBrake, settledAt, inventory, rewound }: PoolSnapshot, at: number): boolean {
  return brake !== null || leaseBrake !== null || at < settledAt || inventory.state === "error" || rewound !== null;
}
