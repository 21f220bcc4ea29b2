/** `relevo adopt`: the replica count of a workload goes to its Pool, or from it, and whoever owns it now is named (K3). */
import { type AdoptionView, adoptionView } from "../../server/adoption-view.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";

export interface AdoptOptions extends GlobalOptions {
  readonly removeOwner?: string;
  readonly uid?: string;
  readonly acceptManager?: readonly string[];
  readonly release?: boolean;
  readonly dryRun?: boolean;
}

/** Exit code 3 when somebody else owns it and was not named, or the signal is not valid: nothing was changed then. */
export async function adopt(context: CliContext, pool: string, options: AdoptOptions): Promise<ExitCode> {
  const body = {
    by: context.user,
    removeOwner: ownerOf(options),
    acceptManagers: options.acceptManager ?? [],
    release: options.release ?? false,
    dryRun: options.dryRun ?? false,
  };
  const result = await connect(context, options).post(`/v1/pools/${poolKeyOf(pool, options.namespace)}/adopt`, body, adoptionView);
  context.out(renderDocument(result, options.output) ?? describe(result));
  return EXIT.done;
}

function ownerOf({ removeOwner, uid, release, dryRun }: AdoptOptions): { kind: string; name: string; uid: string } | null {
  if (release && (removeOwner !== undefined || uid !== undefined || dryRun))
    throw new UsageError("adopt_or_release", "--release stands alone.", { todo: "adopt or release, one after the other" });
  if (removeOwner === undefined && uid === undefined) return null;
  const [kind = "", name = "", ...rest] = (removeOwner ?? "").split("/");
  if (uid === undefined || kind === "" || name === "" || rest.length > 0)
    throw new UsageError("owner_invalid", "An owner is removed by its kind, name and UID.", {
      found: `--remove-owner ${removeOwner ?? "(none)"} --uid ${uid ?? "(none)"}`,
      allowed: "--remove-owner HorizontalPodAutoscaler/NAME --uid UID",
      todo: "without both, relevo adopt names the owners and changes nothing",
    });
  return { kind, name, uid };
}

function describe({ pool, target, replicas, outcome, removed, owners, resetTo }: AdoptionView): string {
  const lines = owners.map(({ kind, name, uid, does }) => `  ${kind}/${name}${uid === "" ? "" : ` (UID ${uid})`} ${does}\n`).join("");
  const after = removed === null ? "" : `, ${removed} is removed`;
  switch (outcome) {
    case "adopted": {
      const back = resetTo === null ? "" : `; it was reset to ${resetTo} meanwhile and goes back to ${replicas}`;
      const now = owners.length === 0 ? "nobody else sets them" : "somebody came back, so nothing is written:";
      return `${target} is ${pool}'s with its ${replicas} replicas${after}: ${now}${back}\n${lines}`;
    }
    case "already_adopted":
      return `${target} is ${pool}'s already, with ${replicas} replicas\n`;
    case "would_adopt":
      return `${target} would be ${pool}'s with its ${replicas} replicas${removed === null ? "" : `, and ${removed} would be removed`}\n${lines}`;
    case "released":
      return `${target} is nobody's: it keeps its ${replicas} replicas, and ${pool} only says what it would do\n`;
    default:
      return outcome satisfies never;
  }
}
