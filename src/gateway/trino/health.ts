/** What a coordinator says of itself, read for the gateway's own check: one that was started anew at the same address is another one, and knows no query of before. */
import { bootIdOf } from "../../model/trino.ts";

/** It costs a coordinator no more than its plain health, and says which process answers and whether that one takes statements yet. */
export const INFO_PATH = "/v1/info";

/** Null when it may get statements, else a code; `bootId` is of the process that was admitted. */
export function infoFailure(text: string, bootId: string | null): string | null {
  const said = parse(text);
  const { nodeId, coordinatorId, coordinator, starting } = said;
  if (coordinator !== true || typeof nodeId !== "string" || typeof coordinatorId !== "string") return "not_coordinator";
  if (bootId !== null && bootIdOf(nodeId, coordinatorId) !== bootId) return "boot_id_mismatch";
  return starting === true ? "starting" : null;
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === "object" && said !== null ? (said as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {}; // whatever answers there is no coordinator
  }
}
