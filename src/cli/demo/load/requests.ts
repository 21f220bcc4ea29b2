/** One request of each kind, from its start to its ending. */
import type { Clock } from "../../../kernel/clock.ts";
import { HEADERS } from "../../../model/membership.ts";
import { COMPLETED, type Ending, endingOfFollowUp, endingOfShort, endingOfStream, type Reply, type ReplyHeaders } from "./outcome.ts";
import type { Transport } from "./transport.ts";

/** The gateway may queue (2 s) and try again (1 s each) before the last try, which has no limit of its own. */
export const SHORT_LIMIT_MS = 15_000;
/** Beyond the length of the stream itself. */
export const STREAM_SLACK_MS = 15_000;
/** How long a transaction lives without use; longer than any step of it may take. */
const TX_TTL_MS = 20_000;

/** What a request tells while it runs. */
export interface Notes {
  readonly seen: (headers: ReplyHeaders) => void;
  readonly acknowledged: (id: string) => void;
}

export async function sendOrder(transport: Transport, id: string, notes: Notes): Promise<Ending> {
  return sendShort(transport, "/orders", id, { "idempotency-key": id }, notes);
}

export async function sendCharge(transport: Transport, id: string, notes: Notes): Promise<Ending> {
  return sendShort(transport, "/charge", id, {}, notes);
}

async function sendShort(
  transport: Transport,
  path: string,
  id: string,
  extra: Readonly<Record<string, string>>,
  notes: Notes,
): Promise<Ending> {
  const reply = await post(transport, path, { id }, extra);
  notes.seen(reply.headers);
  const ending = endingOfShort(reply);
  if (ending.outcome === "completed") notes.acknowledged(id);
  return ending;
}

export async function sendExport(transport: Transport, id: string, seconds: number, notes: Notes): Promise<Ending> {
  const limitMs = seconds * 1000 + STREAM_SLACK_MS;
  const reply = await transport.send({
    method: "GET",
    path: `/export?seconds=${seconds.toFixed(2)}&id=${id}`,
    headers: {},
    body: null,
    limitMs,
  });
  notes.seen(reply.headers);
  const ending = endingOfStream(reply, id);
  if (ending.outcome === "completed") notes.acknowledged(id);
  return ending;
}

/** Begin, items for `lastsMs`, commit; all after the first carry the gateway's token. */
export async function sendTransaction(
  transport: Transport,
  id: string,
  options: { readonly lastsMs: number; readonly stepMs: number; readonly clock: Clock },
  notes: Notes,
): Promise<Ending> {
  const { clock, lastsMs, stepMs } = options;
  const begun = await post(transport, "/tx", { id, ttlMs: TX_TTL_MS }, {});
  notes.seen(begun.headers);
  const refused = endingOfShort(begun);
  if (refused.outcome !== "completed") return refused;

  const endsAt = clock.monotonic() + lastsMs;
  const token = begun.headers[HEADERS.token];
  const extra: Readonly<Record<string, string>> = token === undefined ? {} : { [HEADERS.token]: token };
  const items: string[] = [];
  do {
    const item = `${id}.i${items.length}`;
    const added = await post(transport, `/tx/${id}/items`, { id: item }, extra);
    notes.seen(added.headers);
    const ending = endingOfFollowUp(added);
    if (ending !== null) return ending;
    items.push(item);
    await clock.sleep(Math.max(0, Math.min(stepMs, endsAt - clock.monotonic())));
  } while (clock.monotonic() < endsAt);

  const committed = await post(transport, `/tx/${id}/commit`, {}, extra);
  notes.seen(committed.headers);
  const ending = endingOfFollowUp(committed);
  if (ending !== null) return ending;
  for (const acknowledged of [...items, id]) notes.acknowledged(acknowledged);
  return COMPLETED;
}

function post(transport: Transport, path: string, body: unknown, extra: Readonly<Record<string, string>>): Promise<Reply> {
  const headers = { "content-type": "application/json", ...extra };
  return transport.send({ method: "POST", path, headers, body: JSON.stringify(body), limitMs: SHORT_LIMIT_MS });
}
