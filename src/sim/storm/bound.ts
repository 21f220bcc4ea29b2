/**
 * An upper bound of what any schedule saves, at any size: by maximum flow over time. It need not be reachable; it is proven never to be too low.
 *
 * Given a set E of evacuees, supplies with their places, and for each site a token bucket. Let L(e, s) be the latest start of e at s: its deadline − its work − the
 * readiness of s, and K(e, s) the number of tokens that the site of s has given out by then at most: those in the bucket, and rate × time. (e, s) is possible when
 * s passes its check, serves the pool of e or can be preempted for it, and K(e, s) ≥ 1.
 *
 * Claim. Every schedule that starts nobody before its notice, takes one token of its site for each start and no more places than there are saves at most
 * min(A, B, C) of E, where A, B and C are the maximum flows of these networks (→c: an edge of capacity c):
 *
 *   A  source →1 e → (s, k = K(e, s)) →k (s, next greater k) → … →places(s) site →tokens by the latest L of the site → sink
 *   B  source →1 e → (site, k = max over s of the site of K(e, s)) →k (site, next greater k) → … →places of the site → sink
 *   C  source →places site →tokens that come in step t (site, t) → e →1 sink, for all steps t from the notice of e to its latest L at the site, and
 *      (site, t) →burst + 1 (site, t + 1); source → site → (site, 0) also with the tokens that are in the bucket at the beginning
 *
 * Proof. Take any schedule, and for each e that it saves, at s, send one unit through each network. The value of the flow is what we count; that it respects all
 * capacities is left. In each, e passes at most one unit: it is saved once.
 *
 * A and B: along e → (s, K(e, s)) → the chain of s → the site, and e → (site, k) → the chain. An edge of capacity k in a chain carries only units of evacuees with
 * K(e, s) ≤ k (in B: max K ≤ k), for a unit enters at its own k and k grows along the chain. Each of them started by its latest start, thus with one of the first k
 * tokens of the site; one token is taken by one start alone, so they are at most k. The edge behind the chain of s carries those saved at s, at most the places of s; in B
 * those saved at the site, at most all its places. The last edge of A carries those saved at the site: each has one of the tokens given out by the latest of all latest starts.
 *
 * C: e started in some step t, not before its notice and not after its L. It gets its unit from (site, t), and that from the token that it took: the unit enters at the
 * step in which the token came, or at 0 when it was there, and is carried on to t. The edge into (site, t) has as many units as tokens came in that step, rounded up
 * over the whole time; what the rounding takes from one step it has given to an earlier one, at most one token in sum, so it can be carried: the + 1. An edge between two
 * steps carries tokens that are in the bucket at the end of a step, at most burst. So the flow is valid, and a maximum flow is not smaller. ∎
 *
 * To have fewer nodes, a k is rounded up to one of `STEPS` values of its chain, and time is divided into at most `STEPS` steps that an evacuee may use whole as soon as it may
 * use any moment of them: that only widens edges and adds ways. After the last step C has as many tokens as anybody wants. That classes are not inverted is left out: that, too, only takes
 * schedules away. The bound of the first classes together holds for each schedule's number saved of these classes, so
 * Σ (w(class) − w(next class)) × bound(first classes) is one for the weighted number saved.
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
      among.length === 0 ? 0 : Math.min(...[placesFirst, tokensFirst, stepByStep].map((bound) => bound({ ...input, evacuees: among })));
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

/** Network C. */
function stepByStep(input: EvacuationInput): number {
  const { movers, book } = read(input);
  const net = new FlowNetwork();
  const source = net.node();
  const sink = net.node();
  const sites = book.lanes.map(({ site }) => {
    const places = book.places.filter(({ lane }) => lane.site === site);
    const latest = (mover: Mover): number =>
      mover.group.options.reduce(
        (most, { place, readyInMs }) =>
          place.lane.site === site && place.free > 0 ? Math.max(most, mover.deadline - mover.workMs - readyInMs) : most,
        Number.NEGATIVE_INFINITY,
      );
    const ends = movers.map((mover) => latest(mover) - input.now);
    return { places: places.reduce((sum, { free }) => sum + free, 0), absorption: places[0]?.supply.absorption, ends };
  });
  const horizonMs = Math.max(1, ...sites.flatMap(({ ends }) => ends.filter((end) => Number.isFinite(end))));
  const steps = Math.min(STEPS, 4 * movers.length + 8);
  const stepMs = horizonMs / steps;
  const stepAt = (ms: number): number => Math.min(steps, Math.max(0, Math.floor(ms / stepMs)));
  const own = movers.map(() => net.node());
  for (const node of own) net.edge(node, sink, 1);
  for (const { places, absorption, ends } of sites) {
    if (!absorption) continue;
    const tree = new StepTree(net, steps + 1);
    const gate = net.node();
    net.edge(source, gate, places);
    fillSteps(net, gate, tree, absorption, { steps, stepMs, enough: movers.length });
    for (const [index, { evacuee }] of movers.entries()) {
      const end = ends[index] ?? Number.NEGATIVE_INFINITY;
      const from = evacuee.noticedAt - input.now;
      if (end < 0 || end < from) continue;
      for (const node of tree.covering(stepAt(from), stepAt(end))) net.edge(node, own[index] ?? sink, 1);
    }
  }
  return net.maxFlow(source, sink);
}

/** The tokens of each step, and what is kept of them for the next. */
function fillSteps(
  net: FlowNetwork,
  gate: number,
  tree: StepTree,
  absorption: Absorption,
  { steps, stepMs, enough }: { readonly steps: number; readonly stepMs: number; readonly enough: number },
): void {
  const { perSecond, burst, tokens } = absorption;
  const most = Math.max(1, burst);
  net.edge(gate, tree.leaf(0), Math.ceil(Math.min(tokens, most) - 1e-6));
  for (let step = 0; step < steps; step += 1) {
    const cameBy = (ms: number): number => Math.ceil((ms / 1_000) * perSecond - 1e-6);
    net.edge(gate, tree.leaf(step), Math.min(enough, cameBy((step + 1) * stepMs) - cameBy(step * stepMs)));
    net.edge(tree.leaf(step), tree.leaf(step + 1), Math.ceil(most) + 1);
  }
  if (perSecond > 0) net.edge(gate, tree.leaf(steps), enough);
}

/** Nodes over ranges of steps, each fed by its halves: a range of any length is reached by a few of them. */
class StepTree {
  readonly #nodes: readonly number[];
  readonly #leaves: number;

  constructor(net: FlowNetwork, steps: number) {
    this.#leaves = 2 ** Math.ceil(Math.log2(steps));
    this.#nodes = Array.from({ length: 2 * this.#leaves }, () => net.node());
    for (let index = 2; index < 2 * this.#leaves; index += 1)
      net.edge(this.#nodes[index] ?? 0, this.#nodes[index >> 1] ?? 0, Number.MAX_SAFE_INTEGER);
  }

  leaf(step: number): number {
    return this.#nodes[this.#leaves + step] ?? 0;
  }

  /** From the first to the last, both included. */
  covering(first: number, last: number): readonly number[] {
    const found: number[] = [];
    let low = first + this.#leaves;
    let high = last + this.#leaves + 1;
    for (; low < high; low >>= 1, high >>= 1) {
      if (low % 2 === 1) found.push(this.#nodes[low++] ?? 0);
      if (high % 2 === 1) found.push(this.#nodes[--high] ?? 0);
    }
    return found;
  }
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
