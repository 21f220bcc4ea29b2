/** Follow-ups of a session: tied to one instance by a signed token, in no gateway's memory. */
import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { systemClock } from "../kernel/system.ts";
import { type Answer, KEYS, membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";
import { Tokens, type TokenClaims } from "./tokens.ts";

const transactional: Answer = (request, response) => {
  if (request.url === "/begin") response.setHeader("relevo-session", "begin; ttl=10");
  if (request.url === "/end") response.setHeader("relevo-session", "end");
  response.end("ok");
};

async function twoOf(answer: Answer = transactional) {
  const one = await startInstance("orders-1", answer);
  const two = await startInstance("orders-2", answer);
  return { one, two, members: [one.member(), two.member()] };
}

test("follow-ups go to the instance that began the session, through any replica, also while it drains", async () => {
  const { one, two } = await twoOf();
  const gateways = [await startTestGateway(), await startTestGateway()] as const;
  for (const gateway of gateways) gateway.apply(membershipLine([{ members: [one.member()] }]));
  await Promise.all(gateways.map(untilReady));
  const begun = await send(gateways[0], { path: "/begin" });
  const token = String(begun.headers["relevo-token"]);
  expect(begun.headers["relevo-session"]).toBeUndefined();
  expect(begun.headers["set-cookie"]).toEqual([`relevo-token=${token}; Path=/; HttpOnly; SameSite=Lax`]);

  const draining = [one.member({ state: "draining" }), two.member()];
  for (const gateway of gateways) gateway.apply(membershipLine([{ generation: epoch(1, 2), members: draining }]));
  await Promise.all(gateways.map(untilReady));

  expect(gateways[0].report().routes[0]?.members[0]).toMatchObject({ requests: 0, sessions: 1 });
  const byHeader = await send(gateways[0], { path: "/step", headers: { "relevo-token": token } });
  const byCookie = await send(gateways[1], { path: "/step", headers: { cookie: `a=b; relevo-token=${token}` } });
  expect([byHeader, byCookie].map((answer) => answer.headers["relevo-instance"])).toEqual(["orders-1", "orders-1"]);
  expect(gateways[1].report().routes[0]?.members[0]?.sessions).toBe(1);
  expect(one.seen.at(-1)?.headers["relevo-token"]).toBeUndefined();

  for (const gateway of gateways) await send(gateway, { path: "/end", headers: { "relevo-token": token } });
  expect(gateways.map((gateway) => gateway.report().routes[0]?.members[0]?.sessions)).toEqual([0, 0]);
});

test("a session that is not used for its ttl is closed", async () => {
  const { members } = await twoOf((_, response) => response.setHeader("relevo-session", "begin; ttl=1").end());
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members }]));
  await untilReady(gateway);

  await send(gateway);

  const sessions = () => gateway.report().routes[0]?.members.reduce((sum, member) => sum + member.sessions, 0);
  expect(sessions()).toBe(1);
  await until("it expired", () => sessions() === 0);
});

test("a token for an instance or an incarnation that is gone is answered session_lost, never routed elsewhere", async () => {
  const { one, two } = await twoOf();
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  const token = String((await send(gateway, { path: "/begin" })).headers["relevo-token"]);

  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member({ incarnation: 2 }), two.member()] }]));
  await untilReady(gateway);
  const newIncarnation = await send(gateway, { headers: { "relevo-token": token } });
  gateway.apply(membershipLine([{ generation: epoch(1, 3), members: [two.member()] }]));
  const noInstance = await send(gateway, { headers: { "relevo-token": token } });

  for (const answer of [newIncarnation, noInstance])
    expect(answer).toMatchObject({ status: 410, headers: { "relevo-rejected": "session_lost" } });
  expect(gateway.report().routes[0]?.members[0]?.sessions).toBe(0);
});

test("a follow-up whose instance cannot be reached gets an explicit error", async () => {
  const { one, two } = await twoOf();
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { healthEveryMs: 60_000 }, members: [one.member()] }]));
  await untilReady(gateway);
  const token = String((await send(gateway, { path: "/begin" })).headers["relevo-token"]);
  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member(), two.member()] }]));
  await one.kill();

  expect(await send(gateway, { headers: { "relevo-token": token } })).toMatchObject({
    status: 503,
    headers: { "relevo-rejected": "session_unreachable" },
  });
  expect(two.seen).toEqual([]);
});

test("a forged, an expired, a malformed and a misplaced token are each refused with their code", async () => {
  const { members } = await twoOf();
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members }]));
  await untilReady(gateway);
  const claims: TokenClaims = {
    route: "orders",
    instance: "orders-1",
    incarnation: 1,
    session: "s",
    ttlMs: 1_000,
    expiresAt: systemClock.now() + 60_000,
  };
  const own = new Tokens(KEYS);
  const tokens = {
    token_malformed: "nonsense",
    token_forged: new Tokens([{ id: "k1", secret: "another secret, as long as it must" }]).sign(claims),
    token_expired: own.sign({ ...claims, expiresAt: systemClock.now() - 1 }),
    token_other_route: own.sign({ ...claims, route: "bills" }),
  };

  for (const [code, token] of Object.entries(tokens)) {
    const answer = await send(gateway, { headers: { "relevo-token": token } });
    expect([answer.headers["relevo-rejected"], Math.floor(answer.status / 100)]).toEqual([code, 4]);
  }
});

test("a follow-up that reaches a replica before its first check of the instance waits for it (I11)", async () => {
  const { one } = await twoOf();
  const old = await startTestGateway();
  old.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(old);
  const token = String((await send(old, { path: "/begin" })).headers["relevo-token"]);
  const fresh = await startTestGateway();
  let check = () => {};
  one.holdHealth((answer) => {
    check = answer;
  });
  fresh.apply(membershipLine([{ members: [one.member()] }]));

  const answer = send(fresh, { path: "/step", headers: { "relevo-token": token } });
  await until("it waits", () => fresh.core.ledger.of("orders").counts.queued === 1);
  expect(one.seen.map((request) => request.url)).toEqual(["/begin"]);
  check();

  expect((await answer).headers["relevo-instance"]).toBe("orders-1");
  expect(fresh.core.ledger.of("orders").counts).toMatchObject({ accepted: 1, completed: 1, queued: 0 });
});
