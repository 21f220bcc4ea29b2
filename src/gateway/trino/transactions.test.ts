/** Transactions: their id leaves with a signed token, and comes back without one. */
import { expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { checkCounts, KEYS, until } from "../testing/gateway.ts";
import { Tokens } from "../tokens.ts";
import { follow, post, runOut, sessionsAt, startFleet, type TrinoFleet } from "./testing/fleet.ts";

const ID = "7cfd3dd4-8bb8-4a3c-9a1f-7d2bb4f4b2f1";

async function begin({ gateways }: TrinoFleet): Promise<string> {
  const answer = await runOut([gateways[0]], await post(gateways[0], "start transaction", { "X-Trino-Transaction-Id": "NONE" }));
  return String(answer.headers["x-trino-started-transaction-id"]);
}

const within = (transaction: string) => ({ "X-Trino-Transaction-Id": transaction });

test("the statements of a transaction go to its cluster through any replica, also while it drains (D13)", async () => {
  const fleet = await startFleet();
  const { one, two, gateways, apply } = fleet;
  const transaction = await begin(fleet);
  expect(transaction.startsWith(`${ID}.v1.`)).toBe(true);
  await apply([one.member({ state: "draining" }), two.member()]);

  const first = await post(gateways[1], "rows 1", within(transaction));
  const polled = await follow(gateways[0], first.nextUri, "GET", within(transaction));

  expect([first, polled].map((page) => page.headers["relevo-instance"])).toEqual(["trino-1", "trino-1"]);
  expect(one.transactions).toEqual(["NONE", ID]);
  expect(one.heads.at(-1)?.["x-trino-transaction-id"]).toBe(ID);
  expect(two.statements).toEqual([]);
});

test("a transaction is open work of its cluster until it is committed (I14)", async () => {
  const fleet = await startFleet();
  const [gateway] = fleet.gateways;
  const transaction = await begin(fleet);
  expect(sessionsAt(gateway, "trino-1")).toBe(1);

  await runOut([gateway], await post(gateway, "rows 2", within(transaction)));
  expect(sessionsAt(gateway, "trino-1")).toBe(1);

  await runOut([gateway], await post(gateway, "commit", within(transaction)));
  expect(sessionsAt(gateway, "trino-1")).toBe(0);
});

test("a transaction that was left open holds its cluster for the engine's idle time, and no longer", async () => {
  const fleet = await startFleet({ trino: { routing: {}, clientTimeoutMs: 60_000, transactionTimeoutMs: 300 } });
  await begin(fleet);
  expect(sessionsAt(fleet.gateways[0], "trino-1")).toBe(1);

  await until("it is given up", () => sessionsAt(fleet.gateways[0], "trino-1") === 0);
});

test("a transaction whose cluster is gone is lost, in the protocol's own shape, and begun nowhere else", async () => {
  const fleet = await startFleet();
  const { one, two, gateways, apply } = fleet;
  const transaction = await begin(fleet);
  await apply([one.member({ state: "sealed" }), two.member()]);

  expect(await post(gateways[1], "rows 1", within(transaction))).toMatchObject({
    status: 200,
    stats: { state: "FAILED" },
    error: { errorName: "RELEVO_TRANSACTION_LOST", errorType: "INTERNAL_ERROR" },
  });
  expect(two.statements).toEqual([]);
  checkCounts(gateways[1]);
});

test("a bare id, a forged token, an expired one and that of another transaction are refused with a reason, and nothing is passed on", async () => {
  const fleet = await startFleet();
  const { one, gateways } = fleet;
  const transaction = await begin(fleet);
  const before = one.statements.length;
  const claims = { route: "trino", instance: "trino-1", incarnation: 1, session: ID, ttlMs: 1_000, expiresAt: systemClock.now() + 60_000 };
  const forged = new Tokens([{ id: "k1", secret: "another secret, as long as it must" }]).sign(claims);
  const expired = new Tokens(KEYS).sign({ ...claims, expiresAt: systemClock.now() - 1 });
  const elsewhere = new Tokens(KEYS).sign({ ...claims, route: "orders" });

  const refused: readonly (readonly [string, string])[] = [
    [ID, "TRANSACTION_UNKNOWN"],
    [`${ID}.nonsense`, "TRANSACTION_UNKNOWN"],
    [`.${ID}`, "TRANSACTION_UNKNOWN"],
    [`${ID}.${forged}`, "TRANSACTION_FORGED"],
    [`${ID}.${expired}`, "TRANSACTION_FORGED"],
    [`${ID}.${elsewhere}`, "TRANSACTION_FORGED"],
    [transaction.replace(ID, "00000000-0000-0000-0000-000000000000"), "TRANSACTION_FORGED"],
  ];
  for (const [given, code] of refused)
    expect(await post(gateways[1], "rows 1", within(given))).toMatchObject({
      status: 200,
      error: { errorName: `RELEVO_${code}`, errorType: "USER_ERROR" },
    });
  expect(one.statements.length).toBe(before);
  checkCounts(gateways[1]);
});
