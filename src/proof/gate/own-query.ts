/**
 * The gate's own queries. Their source is a table function: its splits are bound to no host, so that another worker can take them over (those of tpch are bound
 * to a host and port, and a query over them stands still after a kill). What they give is known by arithmetic, not by asking the engine.
 */
import type { Row } from "./ports.ts";

/** Two load both workers: a single stage with retries may land whole on one. */
export const OWN_STATEMENTS = 2;
export const MOST_OWN_STATEMENTS = 4;

const BUCKETS = 10;
/** So many groups leave the workers through the exchange; a multiple of the buckets. */
const GROUPS = 100_000;

/** Of `rows` numbers from 1; the groups of each by a key of their own make the exchange hold more than a few rows. */
export function ownQuery(rows: number): string {
  return (
    `SELECT k % ${BUCKETS} AS bucket, sum(c) AS numbers, CAST(sum(s) AS varchar) AS total FROM ` +
    `(SELECT n % ${GROUPS} AS k, count(*) AS c, sum(n) AS s FROM TABLE(sequence(start => 1, stop => ${rows})) AS t(n) GROUP BY n % ${GROUPS}) ` +
    `GROUP BY k % ${BUCKETS}`
  );
}

export function ownRowsOf(rows: number): readonly Row[] {
  return Array.from({ length: BUCKETS }, (_, bucket) => {
    const first = bucket === 0 ? BUCKETS : bucket;
    const count = rows < first ? 0 : Math.floor((rows - first) / BUCKETS) + 1;
    const last = first + (count - 1) * BUCKETS;
    return [bucket, count, String((BigInt(count) * BigInt(first + last)) / 2n)];
  });
}

/** A split is a million numbers: enough of them that each worker gets some. */
export function probeQuery(workers: number): string {
  return `SELECT count(*) FROM TABLE(sequence(start => 1, stop => ${Math.min(1_000, 4 * workers)}000000)) AS t(n)`;
}
