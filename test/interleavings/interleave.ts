/** Whether two calls at the same time, in whatever order their statements come, end as one after the other: their answers and all rows. */
import pg from "pg";
import { openStore } from "../../src/store/store.ts";
import type { Store } from "../../src/store/port.ts";
import type { PostgresCluster } from "../postgres/cluster.ts";
import { CALLS, type Call, seed, type Seeded } from "./calls.ts";
import { following, type Order, Scheduler, type Side } from "./scheduler.ts";

/** In the order in which they can be filled. */
const TABLES = [
  "meta",
  "pools",
  "blueprints",
  "instances",
  "evidence",
  "steps",
  "losses",
  "loss_totals",
  "notices",
  "gateways",
  "workloads",
];
const SCHEMA = "tried";
const SEED = "seeded";

/** In the database, so that they are planned once. Rows as they are after seeding; numbers of insertion beyond theirs. */
const FUNCTIONS = `
  create function public.put_back() returns void language plpgsql as $$ begin
    ${TABLES.toReversed()
      .map((table) => `delete from ${SCHEMA}.${table};`)
      .join("\n")}
    ${TABLES.map((table) => `insert into ${SCHEMA}.${table} select * from ${SEED}.${table};`).join("\n")}
  end $$;
  create function public.picture() returns json language plpgsql as $$ begin
    return (select json_agg(line order by line) from (
      ${TABLES.map((table) => `select '${table} ' || (to_jsonb(t) - 'seq')::text as line from ${SCHEMA}.${table} t`).join(" union all ")}
    ) lines);
  end $$;
  ${["instances", "evidence", "steps", "notices"].map((table) => `alter table ${SCHEMA}.${table} alter column seq restart with 1000;`).join("\n")}`;

export interface Violation {
  readonly pair: string;
  readonly order: string;
  /** What differs from each outcome that is allowed. */
  readonly differs: readonly string[];
}

export interface Bounds {
  readonly inTurn: number;
  readonly drawn: number;
}

export interface Explored {
  readonly orders: number;
  /** No order of the pair is left. */
  readonly isWhole: boolean;
  readonly violations: readonly Violation[];
}

export class Interleaver {
  readonly #watch: pg.Client;
  readonly #scheduler: Scheduler;
  readonly #stores: Readonly<Record<Side, Store>>;
  readonly #seeded: Seeded;

  private constructor(watch: pg.Client, scheduler: Scheduler, stores: Readonly<Record<Side, Store>>, seeded: Seeded) {
    this.#watch = watch;
    this.#scheduler = scheduler;
    this.#stores = stores;
    this.#seeded = seeded;
  }

  static async open(cluster: PostgresCluster): Promise<Interleaver> {
    const template = await openStore(cluster.url(SEED));
    const seeded = await seed(template);
    await template.close();
    const watch = new pg.Client({ connectionString: cluster.url("public").replace(/\?.*/, "") });
    await watch.connect();
    await watch.query("set session_replication_role = replica"); // so that seeding is not refused by our own triggers
    const scheduler = new Scheduler(watch);
    const open = (side: Side) => openStore({ path: cluster.url(SCHEMA, "&pool_size=1"), client: scheduler.clientOf(side) });
    const stores = { a: await open("a"), b: await open("b") };
    await watch.query(FUNCTIONS);
    return new Interleaver(watch, scheduler, stores, seeded);
  }

  async close(): Promise<void> {
    await this.#stores.a.close();
    await this.#stores.b.close();
    await this.#watch.end();
  }

  /** Every order, up to `inTurn`; when there are more, `drawn` others as `draw` has it: those that follow each other are alike in how they begin. */
  async explore(first: string, second: string, { inTurn, drawn }: Bounds, draw: () => number): Promise<Explored> {
    const allowed = [await this.#sequential(first, second, ["a", "b"]), await this.#sequential(first, second, ["b", "a"])];
    const violations: Violation[] = [];
    const attempt = async (order: Order | (() => Side)): Promise<readonly Side[]> => {
      const { taken, found } = await this.#concurrent(first, second, order);
      if (!allowed.includes(found))
        violations.push({
          pair: `${first} and ${second}`,
          order: taken.join(""),
          differs: allowed.map((each) => differenceOf(found, each)),
        });
      return taken;
    };
    let order: Order | undefined = [];
    let orders = 0;
    for (; order !== undefined && orders < inTurn; orders++) order = following(await attempt(order));
    const isWhole = order === undefined;
    for (let count = 0; !isWhole && count < drawn; count++, orders++) await attempt(() => (draw() < 0.5 ? "a" : "b"));
    return { orders, isWhole, violations };
  }

  async #sequential(first: string, second: string, sides: readonly [Side, Side]): Promise<string> {
    await this.#reset();
    const names: Readonly<Record<Side, string>> = { a: first, b: second };
    const answers: Partial<Record<Side, string>> = {};
    for (const side of sides) answers[side] = await this.#answer(names[side], side);
    return this.#picture(answers);
  }

  async #concurrent(first: string, second: string, order: Order | (() => Side)): Promise<{ taken: readonly Side[]; found: string }> {
    await this.#reset();
    const answers: Partial<Record<Side, string>> = {};
    const call = (name: string, side: Side) => async () => void (answers[side] = await this.#answer(name, side));
    const taken = await this.#scheduler.run({ a: call(first, "a"), b: call(second, "b") }, order);
    return { taken, found: await this.#picture(answers) };
  }

  async #answer(name: string, side: Side): Promise<string> {
    try {
      return JSON.stringify((await (CALLS[name] as Call)(this.#stores[side], this.#seeded, side)) ?? null);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      return code !== undefined && /^(stale|store|lease|era)_/.test(code) ? code : `${code ?? ""} ${message}`;
    }
  }

  async #reset(): Promise<void> {
    await this.#watch.query("select public.put_back()");
  }

  /** All rows, whatever their order, and both answers. */
  async #picture(answers: Partial<Record<Side, string>>): Promise<string> {
    const { rows } = await this.#watch.query<{ picture: readonly string[] }>("select public.picture() as picture");
    return [`a: ${answers.a}`, `b: ${answers.b}`, ...(rows[0]?.picture ?? [])].join("\n");
  }
}

/** Lines of one and not of the other. */
function differenceOf(found: string, allowed: string): string {
  const [left, right] = [found.split("\n"), allowed.split("\n")];
  const only = (these: readonly string[], those: readonly string[], sign: string) =>
    these.filter((line) => !those.includes(line)).map((line) => `${sign} ${line}`);
  return [...only(left, right, "found"), ...only(right, left, "allowed")].join("\n");
}

/** Each pair of calls once; also each with itself. */
export function pairs(): readonly (readonly [string, string])[] {
  const names = Object.keys(CALLS);
  return names.flatMap((first, index) => names.slice(index).map((second) => [first, second] as const));
}
