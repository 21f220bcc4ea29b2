/** What a verification claims, from what was counted: nothing where nothing could have failed. */
import type { NodeView, PoolView, ProtectionView } from "../../server/views.ts";
import type { ClientCounts } from "./client.ts";

export interface Claim {
  readonly claim: string;
  readonly held: boolean;
  readonly found: string;
}

export interface Replacement {
  readonly node: string;
  readonly instances: readonly string[];
  readonly replacements: readonly string[];
  readonly isFinished: boolean;
  readonly servingBefore: number;
  readonly servingLeast: number;
  readonly client: ClientCounts;
  /** What the gateways counted on the pool's route meanwhile; null: they told nothing. */
  readonly acceptedByRoute: number | null;
  readonly lost: { readonly forced: number; readonly obligations: number; readonly assumedSeals: number };
}

/** Fewer requests prove too little. */
const REQUESTS_MIN = 20;

export function protectionClaims(pods: readonly ProtectionView[]): readonly Claim[] {
  const named = (matches: (pod: ProtectionView) => boolean) => pods.filter((pod) => !matches(pod)).map(({ pod }) => pod);
  const claim = (sentence: string, matches: (pod: ProtectionView) => boolean): Claim => {
    const without = named(matches);
    return {
      claim: sentence,
      held: without.length === 0,
      found: without.length === 0 ? `all ${pods.length}` : `not so: ${without.join(", ")}`,
    };
  };
  return [
    claim("each live pod belongs to an object that Relevo made, by its owners' UIDs", ({ isOwned }) => isOwned),
    claim("each live pod carries Relevo's own mark", ({ isMarked }) => isMarked),
    claim("each live pod carries the marks that others read", ({ marks }) => Object.values(marks).every(Boolean)),
  ];
}

export function replacementClaims({ client, servingBefore, servingLeast, isFinished, instances, lost }: Replacement): readonly Claim[] {
  return [
    {
      claim: "every instance of the node was replaced and is gone",
      held: isFinished,
      found: isFinished ? instances.join(", ") : "not within the time",
    },
    {
      claim: "as many served at every look as before",
      held: servingLeast >= servingBefore,
      found: `${servingBefore} before, ${servingLeast} at the least`,
    },
    { claim: "no request of the client failed", held: client.failed === 0, found: `${client.ok} of ${client.sent} answered` },
    {
      claim: "nothing was lost: no forced loss, no obligation, no assumed seal",
      held: lost.forced + lost.obligations + lost.assumedSeals === 0,
      found: `${lost.forced} forced, ${lost.obligations} obligations, ${lost.assumedSeals} assumed seals`,
    },
  ];
}

/** Why the run shows nothing, whatever it counted; empty: it could have failed. */
export function nothingShown({ client, servingBefore, acceptedByRoute, instances }: Replacement): readonly string[] {
  return [
    ...(instances.length === 0 ? ["no instance of the pool served on the node"] : []),
    ...(servingBefore < 2 ? [`${servingBefore} served: with fewer than 2 there is nobody to take over`] : []),
    ...(client.sentInWindow < REQUESTS_MIN
      ? [`${client.sentInWindow} requests were sent while it was replaced, fewer than ${REQUESTS_MIN}`]
      : []),
    ...(client.ok === 0 ? ["no request was ever answered: the client did not reach the service"] : []),
    ...(acceptedByRoute === null || acceptedByRoute < client.sentInWindow
      ? [`the gateways counted ${acceptedByRoute ?? "no"} requests on the pool's route: the client went somewhere else`]
      : []),
  ];
}

/** What a claim's evidence was made of; the cluster's machines say it. */
export function levelOf(nodes: readonly NodeView[]): string {
  if (nodes.some(({ machine }) => machine?.startsWith("kwok:"))) return "real API server with simulated nodes";
  if (nodes.some(({ instanceType }) => instanceType?.startsWith("local."))) return "real processes (embedded cluster)";
  return "this cluster, as it is";
}

export function sumOf(losses: PoolView["losses"]): Replacement["lost"] {
  return {
    forced: losses.filter(({ loss }) => loss === "forced").reduce((sum, { instances }) => sum + instances, 0),
    obligations: losses.reduce((sum, { obligations }) => sum + obligations, 0),
    assumedSeals: losses.reduce((sum, { assumedSeals }) => sum + assumedSeals, 0),
  };
}
