import { afterAll, beforeAll, expect, test } from "vitest";
import { systemRandom } from "../kernel/system.ts";
import { Interleaver, pairs, type Violation } from "../../test/interleavings/interleave.ts";
import type { Random } from "../kernel/random.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { seededRandom } from "../../test/integration/chance.ts";

/** Pairs, and orders of each; all of both are in `interleavings.long.test.ts`. */
const PAIRS = 80;
const ORDERS = { inTurn: 1, drawn: 3 };

function chosen(random: Random): (readonly [string, string])[] {
  return pairs()
    .map((pair) => ({ pair, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .slice(0, PAIRS)
    .map(({ pair }) => pair);
}

let cluster: PostgresCluster;
let interleaver: Interleaver;
beforeAll(async () => {
  cluster = await PostgresCluster.start();
  interleaver = await Interleaver.open(cluster);
});
afterAll(async () => {
  await interleaver?.close();
  await cluster?.stop();
});

test("two calls at the same time end as one after the other, in the orders that were tried of each pair", async () => {
  const seed = Number(process.env["RELEVO_SEED"] ?? Math.floor(systemRandom.next() * 2 ** 31));
  console.log(`seed ${seed} (RELEVO_SEED)`);
  const random = seededRandom(seed);
  const violations: Violation[] = [];
  let orders = 0;
  for (const [first, second] of chosen(random)) {
    const explored = await interleaver.explore(first, second, ORDERS, () => random.next());
    violations.push(...explored.violations);
    orders += explored.orders;
  }
  console.log(`${orders} orders`);
  expect(violations.slice(0, 5)).toEqual([]);
});
