/** Whatever happens to two clusters before two replicas: the counts add up, every answer is one that a client understands, and no query changes its cluster (I14). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import type { Member } from "../../model/membership.ts";
import { checkCounts, until } from "../testing/gateway.ts";
import { follow, type Page, post, startFleet } from "./testing/fleet.ts";

type Action =
  | { readonly kind: "statement"; readonly replica: 0 | 1; readonly sql: string }
  | { readonly kind: "poll"; readonly replica: 0 | 1; readonly query: number; readonly method: "GET" | "DELETE" | "HEAD" }
  | { readonly kind: "member"; readonly index: 0 | 1; readonly state: Member["state"] }
  | { readonly kind: "reset"; readonly index: 0 | 1 }
  | { readonly kind: "pause"; readonly ms: number };

const replica = fc.constantFrom(0 as const, 1 as const);
const anAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("statement" as const),
      replica,
      sql: fc.constantFrom("rows 1", "rows 3", "fail", "spool", "commit"),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("poll" as const),
      replica,
      query: fc.nat(5),
      method: fc.constantFrom("GET" as const, "GET" as const, "GET" as const, "DELETE" as const, "HEAD" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("member" as const),
      index: replica,
      state: fc.constantFrom<Member["state"]>("serving", "serving", "draining", "sealed"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), index: replica }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("pause" as const), ms: fc.integer({ min: 1, max: 15 }) }) },
);

test("counts add up, every answer is a page, 503 or 504, and a query stays with its cluster", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anAction, { minLength: 10, maxLength: 50 }), async (actions) => {
      const { one, two, gateways, apply } = await startFleet({ queueWaitMs: 30, healthEveryMs: 50, perTryTimeoutMs: 200 });
      const coordinators = [one, two] as const;
      const states: [Member["state"], Member["state"]] = ["serving", "serving"];
      const publish = () => apply(coordinators.map((each, index) => each.member({ state: states[index] ?? "serving" })));
      await publish();
      const queries: Page[] = [];
      const pending: Promise<void>[] = [];
      const judged = (page: Page, query: Page | undefined) => {
        expect([200, 204, 410, 503, 504, ...(query === undefined ? [] : [502])]).toContain(page.status);
        const instance = page.headers["relevo-instance"];
        if (page.status === 200 && instance !== undefined && page.id !== undefined)
          expect(page.id.slice(-5)).toBe(instance === "trino-1" ? "aaaaa" : "bbbbb");
        if (query !== undefined && page.id !== undefined) expect(page.id).toBe(query.id);
      };
      for (const action of actions) {
        if (action.kind === "statement") {
          const sent = post(gateways[action.replica], action.sql).then((page) => {
            judged(page, undefined);
            if (page.nextUri !== undefined) queries.push(page);
          });
          pending.push(sent);
          await Promise.race([sent, systemClock.sleep(20)]);
        } else if (action.kind === "poll") {
          const query = queries[action.query % Math.max(1, queries.length)];
          if (query === undefined) continue;
          pending.push(
            follow(gateways[action.replica], query.nextUri, action.method).then((page) => {
              judged(page, query);
              const at = queries.indexOf(query);
              if (page.nextUri !== undefined && at >= 0) queries[at] = page;
            }),
          );
        } else if (action.kind === "member") {
          states[action.index] = states[action.index] === "sealed" ? "sealed" : action.state;
          await publish();
        } else if (action.kind === "reset") {
          for (const socket of coordinators[action.index].instance.sockets) socket.resetAndDestroy();
        } else {
          await systemClock.sleep(action.ms);
        }
        for (const gateway of gateways) checkCounts(gateway);
      }
      await Promise.all(pending);
      for (const gateway of gateways) {
        checkCounts(gateway);
        const { counts } = gateway.core.ledger.of("trino");
        await until("nothing is in flight", () => counts.inFlight === 0 && counts.queued === 0);
      }
    }),
    { numRuns: 10 },
  );
});
