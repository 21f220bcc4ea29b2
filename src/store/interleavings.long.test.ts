import { afterAll, beforeAll, expect, test } from "vitest";
import { Interleaver, pairs } from "../../test/interleavings/interleave.ts";
import { seededRandom } from "../../test/integration/chance.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { CALLS } from "../../test/interleavings/calls.ts";

/** Two calls that wait for each other have some ten orders, all of which are tried; two that share nothing have some thousand, which are alike. */
const ORDERS = { inTurn: 100, drawn: 25 };

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

test.each(Object.keys(CALLS))("%s and any other call at the same time end as one after the other, whatever the order", async (name) => {
  const random = seededRandom(1);
  let orders = 0;
  let whole = 0;
  const mine = pairs().filter(([first]) => first === name);
  for (const [first, second] of mine) {
    const explored = await interleaver.explore(first, second, ORDERS, () => random.next());
    expect(explored.violations.slice(0, 3)).toEqual([]);
    orders += explored.orders;
    if (explored.isWhole) whole += 1;
  }
  console.log(`${name}: ${mine.length} pairs, ${orders} orders, ${whole} pairs wholly`);
});
