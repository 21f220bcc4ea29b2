/**
 * What concerns a pool that another replica of the controller has is asked of that one: what it knows and may do, this one does not. Once: a request that was
 * passed on is answered where it arrives, whoever has the pool by then.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { request as send } from "undici";
import { describeError, RelevoError } from "../kernel/errors.ts";
import { poolKey } from "../model/pool.ts";
import type { ControlPlane, Subject } from "./control-plane.ts";
import type { Logger } from "./log.ts";

export const FORWARDED_HEADER = "relevo-forwarded";
/** Longer than any command waits for its effect. */
const ANSWER_WITHIN_MS = 15_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

type Fields = Readonly<Record<string, string | null | undefined>>;

/** By method and route: whom it concerns. */
const SUBJECTS: Readonly<Record<string, (params: Fields, query: Fields, body: Fields) => Subject | undefined>> = {
  "POST /v1/instances/:instance/drain": ({ instance }) => (instance ? { instance } : undefined),
  "POST /v1/nodes/:node/uncordon": () => ({ any: true }),
  "POST /v1/freeze": (_params, _query, { pool }) => (pool ? { pool } : undefined),
  "POST /v1/unfreeze": (_params, _query, { pool }) => (pool ? { pool } : undefined),
  "POST /v1/release": (_params, _query, { operation }) => (operation ? { operation } : undefined),
  "POST /v1/instances/:instance/force-seal": ({ instance }) => (instance ? { instance } : undefined),
  "POST /v1/pools/:namespace/:name/adopt": ({ namespace, name }) => (namespace && name ? { pool: poolKey(namespace, name) } : undefined),
  "GET /v1/pools/:namespace/:name/plan": ({ namespace, name }) => (namespace && name ? { pool: poolKey(namespace, name) } : undefined),
  "GET /v1/pools/:namespace/:name/protection": ({ namespace, name }) =>
    namespace && name ? { pool: poolKey(namespace, name) } : undefined,
  "GET /v1/events": (_params, { pool }) => (pool ? { pool } : undefined),
  "GET /v1/explain": (_params, { subject }) => (subject ? { poolOrInstance: subject } : undefined),
};

/** A `preHandler`: the caller was let in and what it sent is valid. */
export function forwarding(controlPlane: ControlPlane, log: Logger) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { elsewhere } = controlPlane;
    if (elsewhere === undefined || request.headers[FORWARDED_HEADER] !== undefined) return undefined;
    const subjectOf = SUBJECTS[`${request.method} ${request.routeOptions.url}`];
    const subject = subjectOf?.(request.params as Fields, request.query as Fields, (request.body ?? {}) as Fields);
    const owner = subject === undefined ? undefined : await elsewhere(subject);
    if (owner === undefined) return undefined;
    if (owner.api === null) throw unreachable(owner.id, "it does not say where it is reached", undefined);
    log.debug({ method: request.method, url: request.url, to: owner.id }, "a request is passed on to the pool's owner");
    const answer = await ask(request, owner.id, owner.api);
    return reply.code(answer.status).header("content-type", answer.type).send(answer.body);
  };
}

async function ask(
  { method, url, headers, body }: FastifyRequest,
  id: string,
  api: string,
): Promise<{ readonly status: number; readonly type: string; readonly body: Buffer }> {
  try {
    const answer = await send(addressAt(api, url), {
      method: method as "GET" | "POST",
      headers: {
        [FORWARDED_HEADER]: "1",
        ...(headers.authorization === undefined ? {} : { authorization: headers.authorization }),
        ...(method === "GET" ? {} : { "content-type": "application/json" }),
      },
      ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
      headersTimeout: ANSWER_WITHIN_MS,
      bodyTimeout: ANSWER_WITHIN_MS,
    });
    return { status: answer.statusCode, type: String(answer.headers["content-type"]), body: await wholeOf(answer.body) };
  } catch (error) {
    throw unreachable(id, describeError(error), error);
  }
}

/** Of the request's address only path and query count: a client may write a whole URL, of any host, into its request line. */
function addressAt(api: string, url: string): URL {
  const { pathname, search } = new URL(url, api);
  const address = new URL(api);
  address.pathname = pathname;
  address.search = search;
  return address;
}

async function wholeOf(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new RelevoError("answer_too_large", "The other controller's answer is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function unreachable(id: string, why: string, cause: unknown): RelevoError {
  return new RelevoError("owner_unreachable", `The pool is controller ${id}'s, which does not answer: ${why}.`, {
    class: "retryable",
    cause,
    found: id,
    todo: "try again in some seconds: when it is gone another one takes the pool",
  });
}
