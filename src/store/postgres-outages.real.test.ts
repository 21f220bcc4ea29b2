import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claimed, create, instanceIn, move, NOON, picture, POOL, recordStep } from "../../test/contracts/store-fixtures.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import type { Authority, Store } from "./port.ts";
import { openStore } from "./store.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await PostgresCluster.start();
});
afterAll(() => cluster?.stop());

let schemas = 0;
const freshUrl = (more = "") => cluster.url(`outage_${schemas++}`, more);

/** Does something to the connection, once, before or after the statement that matches. */
function troubled(
  pattern: RegExp,
  trouble: (client: pg.Client) => Promise<unknown> | void,
  when: "before" | "after" = "before",
): typeof pg.Client {
  let isDone = false;
  return class extends pg.Client {
    override query(...input: unknown[]): never {
      const run = () => Reflect.apply(super.query, this, input) as Promise<unknown>;
      const [text] = input;
      if (isDone || typeof text !== "string" || !pattern.test(text)) return run() as never;
      isDone = true;
      const act = async () => {
        if (when === "before") await trouble(this);
        const answer = await run();
        if (when === "after") await trouble(this);
        return answer;
      };
      return act() as never;
    }
  };
}

async function asSuperuser(sql: string, values: unknown[] = []): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ host: "127.0.0.1", port: cluster.port, user: "relevo", database: "postgres" });
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

const backendOf = (client: pg.Client) => (client as unknown as { readonly processID: number }).processID;
const terminate = (client: pg.Client) => asSuperuser("select pg_terminate_backend($1)", [backendOf(client)]);

async function withStore(
  url: string,
  client: typeof pg.Client | undefined,
  work: (store: Store, owner: Authority) => Promise<void>,
): Promise<void> {
  const plain = await openStore(url);
  const owner = await claimed(plain);
  await plain.close();
  const store = await openStore({ path: url, ...(client === undefined ? {} : { client }) });
  try {
    await work(store, owner);
  } finally {
    await store.close();
  }
}

test.each([/^begin/, /for update/, /^insert into "instances"/])(
  "a connection that ends before its COMMIT (at %s) takes nothing with it: the commit is done on another one",
  async (statement) => {
    await withStore(freshUrl(), troubled(statement, terminate), async (store, owner) => {
      await store.commit(owner, [create("i-1"), recordStep("s-1")], NOON);
      expect((await store.readPool(POOL))?.instances.map(({ id }) => id)).toEqual(["i-1"]);
      expect((await store.readPool(POOL))?.openSteps.map(({ id }) => id)).toEqual(["s-1"]);
    });
  },
);

test("a connection that ends in the middle of a read is no matter", async () => {
  await withStore(freshUrl(), troubled(/from "steps"/, terminate), async (store) => {
    expect((await store.readPool(POOL))?.openSteps).toEqual([]);
  });
});

test("when the answer to COMMIT is lost the caller is told that nobody knows, and nothing is repeated", async () => {
  const lostAnswer = troubled(
    /^commit/,
    (client) => {
      const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection;
      stream.destroy();
      throw Object.assign(new Error("Connection terminated unexpectedly"), { code: "ECONNRESET" });
    },
    "after",
  );
  await withStore(freshUrl(), lostAnswer, async (store, owner) => {
    const changes = [create("i-1"), recordStep("s-1")];
    await expect(store.commit(owner, changes, NOON)).rejects.toMatchObject({
      code: "store_unavailable",
      class: "retryable",
      message: expect.stringContaining("did not say whether it kept the change"),
    });
    expect((await store.readPool(POOL))?.instances.map(({ id }) => id)).toEqual(["i-1"]);
    await expect(store.commit(owner, changes, NOON)).rejects.toMatchObject({ code: "store_conflict" });
  });
});

test("a deadlock is undone by the server and done anew by us", async () => {
  // A session looks for a circle once, so long after it began to wait: by then the circle must be closed.
  await asSuperuser("alter role relevo set deadlock_timeout = '3s'");
  const url = freshUrl("&lock_timeout_ms=20000&statement_timeout_ms=20000");
  await withStore(url, undefined, async (store, owner) => {
    await store.commit(owner, instanceIn("serving", "i-1"), NOON);
    const { schema } = { schema: /schema=(\w+)/.exec(url)?.[1] ?? "" };
    const other = new pg.Client({
      host: "127.0.0.1",
      port: cluster.port,
      user: "relevo",
      database: "postgres",
      options: `-c search_path=${schema} -c deadlock_timeout=30s`,
    });
    await other.connect();
    await other.query("begin; select 1 from instances where id = 'i-1' for update");
    const commit = store.commit(owner, [move("i-1", "serving", "draining")], NOON);
    await expect
      .poll(() => asSuperuser("select count(*)::int as n from pg_locks where not granted").then(([row]) => row?.["n"]), { timeout: 5_000 })
      .toBe(1);
    // The other one asks for the pool's row, which the commit holds: a circle.
    await other.query("select 1 from pools where pool = $1 for update", [POOL]);
    await other.query("commit");
    await other.end();
    await commit;
    expect((await store.readPool(POOL))?.instances[0]?.phase).toBe("draining");
  });
  await asSuperuser("alter role relevo reset deadlock_timeout");
});

test("a lock that another holds for too long, and a pool whose connections are all in use, are unavailable and no hang", async () => {
  const url = freshUrl("&pool_size=1&lock_timeout_ms=100&connect_timeout_ms=200");
  await withStore(url, undefined, async (store, owner) => {
    const schema = /schema=(\w+)/.exec(url)?.[1] ?? "";
    const other = new pg.Client({
      host: "127.0.0.1",
      port: cluster.port,
      user: "relevo",
      database: "postgres",
      options: `-c search_path=${schema}`,
    });
    await other.connect();
    await other.query("begin; select 1 from pools for update");
    const results = await Promise.allSettled([
      store.commit(owner, [create("i-1")], NOON),
      ...Array.from({ length: 5 }, () => store.claim("shop/x", "a", NOON)),
    ]);
    expect(results[0]).toMatchObject({
      status: "rejected",
      reason: { code: "store_unavailable", class: "retryable", message: expect.stringContaining("55P03") },
    });

    const whole = new pg.Client({
      host: "127.0.0.1",
      port: cluster.port,
      user: "relevo",
      database: "postgres",
      options: `-c search_path=${schema}`,
    });
    await whole.connect();
    await whole.query("begin; lock table gateways in access exclusive mode");
    const crowd = await Promise.allSettled([store.listGateways(), store.listPools(), store.listPools()]);
    expect(crowd.map((each) => (each.status === "rejected" ? each.reason.code : "done"))).toContain("store_unavailable");
    await whole.end();
    await other.end();
    await store.commit(owner, [create("i-1")], NOON);
  });
});

test("one that stands still in the middle of a commit loses its hold on the pool; another claims it, and the first commits nothing (I4)", async () => {
  const url = freshUrl("&lock_timeout_ms=300");
  const claimedByOther = Promise.withResolvers<void>();
  const still = troubled(/^insert into "instances"/, () => claimedByOther.promise);
  await withStore(url, still, async (store, owner) => {
    const commit = Promise.allSettled([store.commit(owner, [create("i-1")], NOON)]);
    const other = await openStore(url);
    const claim = async () => (await Promise.allSettled([other.claim(POOL, "controller-b", NOON)]))[0];
    await expect.poll(claim, { timeout: 10_000 }).toMatchObject({ status: "fulfilled" });
    claimedByOther.resolve();
    expect((await commit)[0]).toMatchObject({ status: "rejected", reason: { code: "stale_epoch" } });
    expect(await other.listInstances(POOL, 10)).toEqual([]);
    await other.close();
  });
});

test("a statement that takes too long is cancelled, and the connection goes on", async () => {
  const slow = troubled(/^insert into "instances"/, (client) => client.query("select pg_sleep(5)"));
  await withStore(freshUrl("&statement_timeout_ms=150"), slow, async (store, owner) => {
    await expect(store.commit(owner, [create("i-1")], NOON)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("57014"),
    });
    await store.commit(owner, [create("i-1")], NOON);
  });
});

test("a server that does not answer is asked a second time and no more: whoever ends in good order waits for it", async () => {
  const stopped: number[] = [];
  const silent = class extends pg.Client {
    override query(...input: unknown[]): never {
      const run = () => Reflect.apply(super.query, this, input) as Promise<unknown>;
      if (typeof input[0] !== "string" || !/^begin/.test(input[0])) return run() as never;
      const pid = backendOf(this);
      process.kill(pid, "SIGSTOP");
      stopped.push(pid);
      return run() as never;
    }
  };
  await withStore(freshUrl("&statement_timeout_ms=100"), silent, async (store, owner) => {
    try {
      await expect(store.commit(owner, [create("i-1")], NOON)).rejects.toMatchObject({
        code: "store_unavailable",
        class: "retryable",
        message: expect.stringContaining("does not answer"),
      });
    } finally {
      for (const pid of stopped) process.kill(pid, "SIGCONT");
    }
    expect(stopped.length).toBe(2);
  });
});

test("the server is killed while many commit: what was acknowledged is there, nothing is there by half, and the store goes on when it is back", async () => {
  const url = freshUrl("&connect_timeout_ms=500");
  const store = await openStore(url);
  const owner = await claimed(store);
  const acknowledged: string[] = [];
  const failures = new Set<string>();
  let isOver = false;
  const lane = async (name: string): Promise<void> => {
    for (let number = 0; !isOver; number++) {
      const id = `${name}-${number}`;
      try {
        await store.commit(owner, [create(`i-${id}`), recordStep(`s-${id}`)], NOON);
        acknowledged.push(id);
      } catch (error) {
        failures.add((error as { code: string }).code);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  };
  const lanes = ["a", "b", "c", "d"].map(lane);
  for (const how of ["immediate", "fast"] as const) {
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(before + 20);
    await cluster.end(how);
    await expect.poll(() => failures.has("store_unavailable"), { timeout: 10_000 }).toBe(true);
    await cluster.launch();
  }
  const before = acknowledged.length;
  await expect.poll(() => acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(before + 20);
  isOver = true;
  await Promise.all(lanes);

  expect([...failures]).toEqual(["store_unavailable"]);
  const there = new Set((await store.readPool(POOL))?.instances.map(({ id }) => id.slice(2)));
  const steps = new Set((await store.readPool(POOL))?.openSteps.map(({ id }) => id.slice(2)));
  expect(acknowledged.filter((id) => !there.has(id))).toEqual([]);
  expect([...there].filter((id) => !steps.has(id))).toEqual([]);
  await store.close();
});

test("what it is is told: where without a password, which schema, and whether a second disk confirms", async () => {
  const store = await openStore(freshUrl());
  expect(await store.describeStore()).toEqual({
    kind: "postgresql",
    version: expect.stringMatching(/^\d+/),
    where: expect.stringMatching(/^postgresql:\/\/127\.0\.0\.1:\d+\/postgres\?schema=outage_\d+$/),
    schema: MIGRATIONS.length,
    synchronous: "none",
  });
  await store.close();
});

test("a server that is not there, a user it refuses and a database that is none are said in a sentence with what to do", async () => {
  await expect(openStore("postgresql://me@127.0.0.1:1/x")).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("ECONNREFUSED"),
  });
  await expect(openStore(cluster.url().replace("relevo@", "nobody@"))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("28"),
  });
  await expect(openStore(cluster.url().replace("/postgres?", "/none?"))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("3D000"),
  });
  await expect(openStore(cluster.url("relevo", "&sslmode=require"))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("SSL"),
  });
});

test("picture of an untouched pool stays what it was over a restart", async () => {
  const url = freshUrl();
  await withStore(url, undefined, async (store, owner) => {
    await store.commit(owner, [...instanceIn("serving", "i-1"), recordStep("s-1")], NOON);
    const before = await picture(store);
    await cluster.end("fast");
    await cluster.launch();
    expect(await picture(store)).toEqual(before);
  });
});
