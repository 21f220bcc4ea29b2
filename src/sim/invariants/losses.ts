import { isRouted } from "../../model/phase.ts";
import type { Change } from "../../store/port.ts";
import type { Checker } from "./checker.ts";

type CountLoss = Extract<Change, { kind: "count_loss" }>;

/** Watches: commits that seal an instance, or give up its process while it takes traffic. */
export function lossesAreCounted(): Checker {
  return {
    id: "D18",
    rule: "what is sealed or lost is counted in its class, in the same commit",
    watches: ["committed"],
    on(event, { mirror, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" && change.kind !== "renew_incarnation") continue;
        const counted = event.changes.find(
          (other): other is CountLoss => other.kind === "count_loss" && other.instance === change.instance,
        );
        const known = mirror.get(change.instance);
        if (change.kind === "renew_incarnation") {
          if (known !== undefined && isRouted(known.phase) && counted?.loss !== "forced")
            violate(`the process of ${change.instance} is lost and not counted`);
          continue;
        }
        if (change.to !== "sealed") continue;
        const { seal, drainLoss } = change.set ?? {};
        if (seal === "confirmed" && known?.evidence.has("forced"))
          violate(`${change.instance} lost its process and is sealed as drained (D13)`);
        if (counted === undefined || counted.seal !== seal) violate(`${change.instance} is sealed ${seal} and counted ${counted?.seal}`);
        const loss = drainLoss ?? known?.drainLoss;
        // A door that is shut was told its class when that was decided.
        if (counted !== undefined && seal !== "assumed" && counted.loss !== loss)
          violate(`${change.instance} is lost ${loss} and counted ${counted.loss}`);
      }
    },
  };
}
