/**
 * Which replica a pool is assigned to: rendezvous hashing of (replica, pool). Every replica that sees the same members comes to the same answer without asking
 * anybody; when one leaves only its pools move, and to one that comes only those move that become its own. An assignment authorises nobody: the store does.
 */
import { createHash } from "node:crypto";

/** Undefined only when there is no replica. */
export function assigneeOf(pool: string, replicas: readonly string[]): string | undefined {
  let best: string | undefined;
  let highest = "";
  for (const replica of replicas) {
    const weight = weightOf(replica, pool);
    // Two of the same weight: the one that comes first by name, whatever the order of the list is.
    if (best !== undefined && (weight < highest || (weight === highest && replica > best))) continue;
    best = replica;
    highest = weight;
  }
  return best;
}

/** Hexadecimal digits of one length, which compare as the numbers do. */
function weightOf(replica: string, pool: string): string {
  return createHash("sha256").update(`${replica}\n${pool}`).digest("hex").slice(0, 16);
}
