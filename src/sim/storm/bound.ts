/**
 * An upper bound of what any schedule saves, at any size: by maximum flow over time. It need not be reachable; it is proven never to be too low.
 *
 * Given a set E of evacuees, supplies with their places, and for each site a token bucket. Let L(e, s) be the latest start of e at s: its deadline − its work − the
 * readiness of s, and K(e, s) the number of tokens that the site of s has given out by then at most: those in the bucket, and rate × time. (e, s) is possible when
 * s passes its check, serves the pool of e or can be preempted for it, and K(e, s) ≥ 1.
 *
 * Claim. Every schedule that takes one token of its site for each start and no more places than there are saves at most min(A, B) of E, where A and B are the maximum
 * flows of these networks:
 *
 *   A  source →1 e → (s, k = K(e, s)) →k (s, next greater k) → … →places(s) site →tokens by the latest L of the site → sink
 *   B  source →1 e → (site, k = max over s of the site of K(e, s)) →k (site, next greater k) → … →places of the site → sink
 *
 * Proof. Take any schedule. For each e that it saves, at s, send one unit along e → (s, K(e, s)) → the chain of s → the site → the sink in A, and along
 * e → (site, k) → the chain → the sink in B. It is a flow of the value that we count; that it respects all capacities is left. The edges out of the source: each e is saved
 * once. An edge of capacity k in a chain carries only units of evacuees with K(e, s) ≤ k (in B: max K ≤ k), for a unit enters at its own k and k grows along the
 * chain. Each of them started by its latest start, thus with one of the first K(e, s) ≤ k tokens of the site; one token is taken by one start alone, so they are
 * at most k. The edge behind the chain of s carries those saved at s, at most the places of s; in B those saved at the site, at most all its places. The last edge of A
 * carries those saved at the site: each has one of the tokens given out by the latest of all latest starts. So the flow is valid, and a maximum flow is not smaller. ∎
 *
 * To have fewer nodes, a k is rounded up to one of `STEPS` values of its chain: that only widens edges. That tokens overflow when the bucket is full, that nobody starts
 * before its notice and that classes are not inverted is left out: that, too, only takes schedules away. The bound of the first classes together holds for
 * each schedule's number saved of these classes, so Σ (w(class) − w(next class)) × bound(first classes) is one for the weighted number saved.
 */
import { PRIORITIES, type Priority } from "../../model/membership.ts";
import { Book, rankOf } from "../../plan/evacuation/book.ts";
import { type Mover, moversOf } from "../../plan/evacuation/movers.ts";
import type { Absorption, EvacuationInput } from "../../plan/evacuation/types.ts";
import { FlowNetwork } from "./max-flow.ts";

const STEPS = 128;

/** What one saved of each class counts. */
export const WEIGHTS: Readonly<Record<Priority, number>> = { critical: 3, standard: 2, batch: 1 };

export interface SavedBound {
  /** At most so many of all can be saved. */
  readonly total: number;
  /** At most so many of this class and of all above it together. */
  readonly upTo: Readonly<Record<Priority, number>>;
  /** At most so much when each one saved counts as its class weighs. */
  readonly weighted: number;
}

/**
 * `supplies` holds all places that there are in the whole time, and the buckets as they are at `now`, the beginning; the evacuees' notices may be later. Reservations
 * are not looked at.
 */
export function boundOf(input: EvacuationInput): SavedBound {
  const upTo = { critical: 0, standard: 0, batch: 0 };
  for (const priority of PRIORITIES) {
    const among = input.evacuees.filter((each) => rankOf(each.priority) <= rankOf(priority));
    upTo[priority] =
      among.length === 0 ? 0 : Math.min(placesFirst({ ...input, evacuees: among }), tokensFirst({ ...input, evacuees: among }));
  }
  const weighted =
    (WEIGHTS.critical - WEIGHTS.standard) * upTo.critical + (WEIGHTS.standard - WEIGHTS.batch) * upTo.standard + WEIGHTS.batch * upTo.batch;
  return { total: upTo.batch, upTo, weighted };
}

export function weightOf(saved: Readonly<Record<Priority, number>>): number {
  return PRIORITIES.reduce((sum, priority) => sum + WEIGHTS[priority] * saved[priority], 0);
}

/** Network A. */
function placesFirst(input: EvacuationInput): number {
  const { movers, book, tokensBy } = read(input);
  const ways = movers.map((mover) =>
    mover.group.options.flatMap(({ place, readyInMs }) => {
      const tokens = tokensBy(place.lane.site, mover.deadline - mover.workMs - readyInMs);
      return tokens >= 1 && place.free > 0 ? [{ chain: place.supply.id, site: place.lane.site, tokens }] : [];
    }),
  );
  const most = new Map<string, number>();
  for (const { site, tokens } of ways.flat()) most.set(site, Math.max(most.get(site) ?? 0, tokens));
  const net = new FlowNetwork();
  const sink = net.node();
  const sites = new Map(book.lanes.map(({ site }) => [site, net.node()]));
  for (const [site, node] of sites) net.edge(node, sink, most.get(site) ?? 0);
  const ends = new Map(
    book.places.map(({ supply, lane, free }) => {
      const end = net.node();
      net.edge(end, sites.get(lane.site) ?? sink, free);
      return [supply.id, end];
    }),
  );
  return flowThrough(net, sink, ways, ends);
}

/** Network B. */
function tokensFirst(input: EvacuationInput): number {
  const { movers, book, tokensBy } = read(input);
  const ways = movers.map((mover) => {
    const bySite = new Map<string, number>();
    for (const { place, readyInMs } of mover.group.options) {
      const tokens = place.free > 0 ? tokensBy(place.lane.site, mover.deadline - mover.workMs - readyInMs) : 0;
      if (tokens >= 1) bySite.set(place.lane.site, Math.max(bySite.get(place.lane.site) ?? 0, tokens));
    }
    return [...bySite].map(([chain, tokens]) => ({ chain, tokens }));
  });
  const net = new FlowNetwork();
  const sink = net.node();
  const ends = new Map(
    book.lanes.map(({ site }) => {
      const end = net.node();
      const places = book.places.filter(({ lane }) => lane.site === site).reduce((sum, { free }) => sum + free, 0);
      net.edge(end, sink, places);
      return [site, end];
    }),
  );
  return flowThrough(net, sink, ways, ends);
}

interface Way {
  readonly chain: string;
  readonly tokens: number;
}

/** Builds the chains that both have in common, one node for all evacuees with the same ways, and lets it flow. */
function flowThrough(net: FlowNetwork, sink: number, ways: readonly (readonly Way[])[], ends: ReadonlyMap<string, number>): number {
  const entry = new Map(
    [...ends].map(([chain, end]) => [
      chain,
      chainTo(
        net,
        end,
        ways.flat().filter((way) => way.chain === chain),
      ),
    ]),
  );
  const groups = new Map<string, { count: number; readonly into: readonly number[] }>();
  for (const own of ways) {
    const into = own.flatMap(({ chain, tokens }) => entry.get(chain)?.(tokens) ?? []).toSorted((a, b) => a - b);
    const key = into.join();
    const group = groups.get(key);
    if (group) group.count += 1;
    else groups.set(key, { count: 1, into });
  }
  const source = net.node();
  for (const { count, into } of groups.values()) {
    const node = net.node();
    net.edge(source, node, count);
    for (const to of into) net.edge(node, to, count);
  }
  return net.maxFlow(source, sink);
}

/** The nodes of one chain; tells at which a number of tokens enters. */
function chainTo(net: FlowNetwork, end: number, ways: readonly Way[]): (tokens: number) => number {
  const all = [...new Set(ways.map(({ tokens }) => tokens))].toSorted((a, b) => a - b);
  const every = Math.ceil(all.length / STEPS);
  // From the greatest down, so that each is rounded up.
  const steps = all.filter((_, index) => (all.length - 1 - index) % Math.max(1, every) === 0);
  const nodes = steps.map(() => net.node());
  for (const [index, tokens] of steps.entries()) net.edge(nodes[index] ?? end, nodes[index + 1] ?? end, tokens);
  return (tokens) => nodes[steps.findIndex((step) => step >= tokens)] ?? end;
}

function read(input: EvacuationInput): {
  readonly movers: readonly Mover[];
  readonly book: Book;
  readonly tokensBy: (site: string, at: number) => number;
} {
  const book = new Book(input.supplies, input.now);
  const movers = moversOf(input.evacuees, book);
  const buckets = new Map(input.supplies.map(({ absorption }) => [absorption.site, absorption]));
  return { movers, book, tokensBy: (site, at) => tokensOf(buckets.get(site), at - input.now, movers.length) };
}

/** Those in the bucket and those that came since; more than there are evacuees are never needed. */
function tokensOf(bucket: Absorption | undefined, sinceMs: number, enough: number): number {
  if (!bucket || sinceMs < 0) return 0;
  if (sinceMs === Infinity) return bucket.perSecond > 0 ? enough : Math.min(enough, Math.floor(bucket.tokens));
  return Math.min(enough, Math.floor(Math.min(bucket.tokens, Math.max(1, bucket.burst)) + (sinceMs / 1_000) * bucket.perSecond + 1e-6));
}
