/**
 * What the gateway does for an evacuation (S12): the successor of a process that is gone takes its load gradually, the spike waits within bounds, and what finds no
 * place to wait hears so at once. By the policy that a Pool's document makes. Level: real processes' sockets.
 */
import { expect, test } from "vitest";
import {
  checkCounts,
  type ClientAnswer,
  membershipLine,
  send,
  startInstance,
  startTestGateway,
  until,
  untilReady,
} from "../../src/gateway/testing/gateway.ts";
import { epoch } from "../../src/kernel/epoch.ts";
import { routePolicyOf } from "../../src/model/pool.ts";
import { specOf } from "../builders/pool.ts";

test("after an evacuation the spike waits while the successor starts slowly, and what is too much is refused with Retry-After: every request has one answer", async () => {
  const policy = {
    ...routePolicyOf(
      specOf({
        spec: {
          priority: "critical",
          traffic: { slowStart: "60s", concurrency: 10, queue: { limit: 6, wait: "20s" }, healthEvery: "100ms" },
        },
      }),
    ),
    healthPath: "/healthz",
  };
  expect(policy).toMatchObject({ priority: "critical", slowStartMs: 60_000, concurrency: 10, queueLimit: 6, queueWaitMs: 20_000 });

  const held: (() => void)[] = [];
  let most = 0;
  const gone = await startInstance("orders-old", (_, response) => response.end("old"));
  const successor = await startInstance("orders-new", (_, response) => {
    held.push(() => void response.end("new"));
    most = Math.max(most, held.length);
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ generation: epoch(1, 1), policy, members: [gone.member()] }]));
  await untilReady(gateway);
  expect(await send(gateway)).toMatchObject({ body: "old" });

  await gone.kill();
  gateway.apply(membershipLine([{ generation: epoch(1, 2), policy, members: [gone.member({ state: "sealed" }), successor.member()] }]));
  await untilReady(gateway);
  const answers: ClientAnswer[] = [];
  const spike = Array.from({ length: 12 }, () => send(gateway).then((answer) => void answers.push(answer)));
  await until("what is too much is refused", () => answers.length === 5);

  expect(most).toBe(1);
  expect(answers.map(({ status, headers }) => [status, headers["retry-after"], headers["relevo-rejected"]])).toEqual(
    Array.from({ length: 5 }, () => [503, "1", "queue_full"]),
  );
  checkCounts(gateway);

  // One after the other, as its load allows.
  const release = async (): Promise<void> => {
    for (const answer of held.splice(0)) answer();
    await until("the next one is there, or none is left", () => held.length > 0 || answers.length === 12);
  };
  while (answers.length < 12) await release();
  await Promise.all(spike);

  expect(most).toBe(1);
  expect(answers.filter(({ status, body }) => status === 200 && body === "new").length).toBe(7);
  expect([...gateway.core.ledger.routes()].map(({ counts }) => counts)).toEqual([
    { accepted: 13, completed: 8, inFlight: 0, queued: 0, rejected: 5, cut: 0, retried: 0 },
  ]);
});
