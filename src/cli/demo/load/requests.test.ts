import { expect, test } from "vitest";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import type { Ending, Reply } from "./outcome.ts";
import { sendCharge, sendExport, sendOrder, sendTransaction } from "./requests.ts";
import type { Exchange, Transport } from "./transport.ts";

/** Answers in turn; the last answer again when they run out. */
function scripted(...replies: Reply[]): Transport & { readonly sent: Exchange[] } {
  const sent: Exchange[] = [];
  return {
    sent,
    send: async (exchange) => {
      sent.push(exchange);
      return replies[Math.min(sent.length, replies.length) - 1] ?? { kind: "timeout", status: null, headers: {} };
    },
    close: () => undefined,
  };
}

function answer(status: number, headers: Readonly<Record<string, string>> = {}, text = ""): Reply {
  return { kind: "answer", status, headers, text };
}

function notes(): { readonly acknowledged: string[]; readonly take: { seen: () => void; acknowledged: (id: string) => void } } {
  const acknowledged: string[] = [];
  return { acknowledged, take: { seen: () => undefined, acknowledged: (id) => void acknowledged.push(id) } };
}

test("an order carries its id as Idempotency-Key, a charge carries none", async () => {
  const transport = scripted(answer(201));
  const { acknowledged, take } = notes();
  await sendOrder(transport, "a", take);
  await sendCharge(transport, "b", take);

  expect(transport.sent.map(({ method, path, headers, body }) => [method, path, headers["idempotency-key"], body])).toEqual([
    ["POST", "/orders", "a", '{"id":"a"}'],
    ["POST", "/charge", undefined, '{"id":"b"}'],
  ]);
  expect(acknowledged).toEqual(["a", "b"]);
});

test("what was not answered well is not acknowledged", async () => {
  const { acknowledged, take } = notes();
  await sendOrder(scripted(answer(503)), "a", take);
  await sendExport(scripted(answer(200, {}, '{"line":0}\n')), "b", 3, take);

  expect(acknowledged).toEqual([]);
});

/** A transaction of about one second, with an item every 400 ms. */
async function transact(transport: Transport): Promise<{ readonly ending: Ending; readonly acknowledged: readonly string[] }> {
  const clock = new VirtualClock();
  const { acknowledged, take } = notes();
  const ending = sendTransaction(transport, "t", { lastsMs: 1_000, stepMs: 400, clock }, take);
  await clock.advance(60_000);
  return { ending: await ending, acknowledged };
}

test("a transaction sends its items and its commit with the token that it was given", async () => {
  const transport = scripted(answer(201, { "relevo-token": "signed" }), answer(200));
  const { ending, acknowledged } = await transact(transport);

  expect(ending).toEqual({ outcome: "completed", detail: null });
  expect(transport.sent.map(({ path, headers }) => [path, headers["relevo-token"]])).toEqual([
    ["/tx", undefined],
    ["/tx/t/items", "signed"],
    ["/tx/t/items", "signed"],
    ["/tx/t/items", "signed"],
    ["/tx/t/commit", "signed"],
  ]);
  expect(acknowledged).toEqual(["t.i0", "t.i1", "t.i2", "t"]);
});

test("a transaction ends at the first request that does not go through, and nothing of it is acknowledged", async () => {
  const gone = scripted(answer(201), answer(200), answer(410, { "relevo-rejected": "session_lost" }));
  const wrong = scripted(answer(201), answer(404));
  const refused = scripted(answer(503, { "relevo-rejected": "queue_full" }));

  expect([await transact(gone), await transact(wrong), await transact(refused)]).toEqual([
    { ending: { outcome: "cut", detail: "session_lost" }, acknowledged: [] },
    { ending: { outcome: "rejected", detail: "404 by the instance" }, acknowledged: [] },
    { ending: { outcome: "rejected", detail: "503 queue_full" }, acknowledged: [] },
  ]);
  expect([gone.sent.length, wrong.sent.length, refused.sent.length]).toEqual([3, 2, 1]);
});
