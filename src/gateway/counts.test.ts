/** The identity of the counts under random faults, on real sockets (I14). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { systemClock } from "../kernel/system.ts";
import { connect } from "node:net";
import { checkCounts, membershipLine, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

type Action =
  | { readonly kind: "request"; readonly path: string; readonly method: string; readonly leavesAfterMs: number | null }
  | { readonly kind: "member"; readonly index: number; readonly state: MemberFate }
  | { readonly kind: "reset"; readonly index: number }
  | { readonly kind: "pause"; readonly ms: number };

type MemberFate = "serving" | "suspect" | "draining" | "fenced" | "gone";

const PATHS = ["/stale", "/ok", "/slow", "/stream", "/dies", "/breaks", "/not-taken", "/never", "/session"];

const anAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("request" as const),
      path: fc.constantFrom(...PATHS),
      method: fc.constantFrom("GET", "POST"),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 40 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("member" as const),
      index: fc.nat(2),
      state: fc.constantFrom<MemberFate>("serving", "suspect", "draining", "fenced", "gone"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), index: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("pause" as const), ms: fc.integer({ min: 1, max: 20 }) }) },
);

test("accepted = completed + in flight + queued + rejected + cut at every moment, and nothing is left at the end (I14)", async () => {
  const instances = await Promise.all(
    [0, 1, 2].map((index) =>
      startInstance(`orders-${index}`, (request, response) => {
        switch (request.url) {
          case "/slow":
            return void setTimeout(() => response.end("slow"), 15);
          case "/stream":
            response.write("begin");
            return void setTimeout(() => response.end("end"), 15);
          case "/dies":
            return void response.socket?.resetAndDestroy();
          case "/breaks":
            response.write("begin");
            return void setTimeout(() => response.socket?.resetAndDestroy(), 5);
          case "/not-taken":
            return void response.writeHead(503, { "relevo-not-taken": "1" }).end();
          case "/never":
            return;
          case "/stale":
            return void response.writeHead(200, { "relevo-writer-epoch": "1.1" }).end("stale");
          case "/session":
            response.setHeader("relevo-session", "begin; ttl=1");
            return void response.end();
          default:
            return void response.end("ok");
        }
      }),
    ),
  );
  let counter = 1;
  await fc.assert(
    fc.asyncProperty(fc.array(anAction, { minLength: 5, maxLength: 40 }), async (actions) => {
      const gateway = await startTestGateway();
      const states = ["serving", "serving", "serving"] as MemberFate[];
      const policy = { perTryTimeoutMs: 60, concurrency: 3, queueLimit: 3, queueWaitMs: 80, healthEveryMs: 50 };
      const apply = () => {
        counter += 1;
        const members = instances.flatMap((instance, index) => {
          const state = states[index];
          return state === undefined || state === "gone"
            ? []
            : [instance.member({ state, writer: { ordinal: index, minAccepted: epoch(1, 2) } })];
        });
        gateway.apply(membershipLine([{ generation: epoch(1, counter), policy, members }]));
      };
      apply();
      await untilReady(gateway);
      const { counts } = gateway.core.ledger.of("orders");
      const watch = setInterval(() => checkCounts(gateway), 1);
      const requests: Promise<void>[] = [];
      try {
        for (const action of actions) {
          if (action.kind === "request") requests.push(ask(gateway.url, action.method, action.path, action.leavesAfterMs ?? 400));
          else if (action.kind === "reset") for (const socket of instances[action.index]?.sockets ?? []) socket.resetAndDestroy();
          else if (action.kind === "pause") await systemClock.sleep(action.ms);
          else {
            states[action.index] = action.state;
            apply();
          }
          checkCounts(gateway);
        }
        await Promise.all(requests);
        await until("nothing is in flight", () => counts.inFlight === 0 && counts.queued === 0);
        expect(counts.accepted).toBe(counts.completed + counts.rejected + counts.cut);
        for (const member of gateway.report().routes[0]?.members ?? []) expect([member.requests, member.upgraded]).toEqual([0, 0]);
      } finally {
        clearInterval(watch);
        await gateway.close();
      }
    }),
    { numRuns: 12 },
  );
});

/** One request that leaves at the latest after so many ms. */
function ask(url: string, method: string, path: string, leavesAfterMs: number): Promise<void> {
  return new Promise((resolve) => {
    const length = method === "POST" ? "Content-Length: 2\r\n" : "";
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () =>
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n${length}\r\n${method === "POST" ? "ab" : ""}`),
    );
    const timer = systemClock.after(leavesAfterMs, () => socket.destroy());
    socket.resume();
    socket.on("error", () => undefined);
    socket.on("close", () => {
      timer.cancel();
      resolve();
    });
  });
}
