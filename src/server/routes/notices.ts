/**
 * Webhooks. A wrong body gets 4xx with the field, is logged and counted, and changes nothing; while the store is away the answer is 503, so that the sender
 * tries again (S1).
 */
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { findSource, NOTICE_HEADERS, NOTICE_SOURCES } from "../../notices/registry.ts";
import { assertSigned, SIGNATURE_HEADER } from "../access.ts";
import type { RouteContext } from "../app.ts";
import { assertOwnNode, type Caller } from "../callers.ts";
import { httpStatusOf, toRelevoError } from "../error-codes.ts";
import { receiptView } from "../views.ts";

const MAX_NOTICE_BYTES = 64 * 1024;

export const noticeRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, metrics, webhook, log }) => {
  /** Whoever came with a token was looked at before. */
  const assertSender = (caller: Caller, headers: IncomingHttpHeaders, raw: Uint8Array) => {
    if (caller.kind === "person" && caller.role === null) assertSigned(webhook, first(headers[SIGNATURE_HEADER]), raw);
  };
  // The signature is over the bytes as they came.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: MAX_NOTICE_BYTES }, (_request, body, done) => done(null, body));

  // Also for bodies that are refused before the handler sees them. What is taken is counted where it is matched.
  app.addHook("onError", async ({ params, ip }, _reply, thrown) => {
    const { source } = params as { readonly source: string };
    const error = toRelevoError(thrown);
    // Of a source that nobody knows the name may be anything: it is no label.
    metrics.countNotice(findSource(source)?.name ?? "unknown", error.code);
    log.warn(
      { event: "notice_refused", source, code: error.code, field: error.field, from: ip, status: httpStatusOf(error) },
      error.message,
    );
  });

  app.post(
    "/v1/notices/:source",
    {
      bodyLimit: MAX_NOTICE_BYTES,
      schema: {
        summary: "Receive a notice from a cloud, in its own format",
        params: z.object({ source: z.string().max(40) }),
        response: { 202: receiptView },
      },
    },
    async ({ params, body, headers, caller }, reply) => {
      const raw = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      assertSender(caller, headers, raw);
      const source = getSource(params.source);
      if (caller.kind === "agent") assertAgentsSource(source);
      const node = caller.kind === "agent" ? { node: ownNode(caller.node) } : {};
      const passedOn = Object.fromEntries(
        NOTICE_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, first(headers[name]) ?? ""]])),
      );
      const receipt = await controlPlane.receiveNotice({ source, body: decode(raw), headers: passedOn, ...node });
      log.info({ event: "notice", source, ...receipt }, "a notice was received");
      return await reply
        .code(202)
        .send({ accepted: [...receipt.accepted], duplicates: [...receipt.duplicates], ignored: [...receipt.ignored] });
    },
  );

  app.post(
    "/v1/sources/:source/heartbeat",
    {
      bodyLimit: MAX_NOTICE_BYTES,
      schema: {
        summary: "An agent says that it lives",
        params: z.object({ source: z.string().max(40) }),
        response: { 204: z.null() },
      },
    },
    async ({ params, body, headers, caller }, reply) => {
      const raw = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      assertSender(caller, headers, raw);
      const source = getSource(params.source);
      const said = parseHeartbeat(raw);
      if (caller.kind === "agent") assertAgentsSource(source);
      assertOwnNode(caller, said.from);
      controlPlane.receiveHeartbeat({ source, ...said });
      return await reply.code(204).send(null);
    },
  );
};

const heartbeat = z.strictObject({
  /** The node that the sender is on. */
  from: z.string().min(1).max(253),
  everyMs: z.int().min(1_000).max(3_600_000),
  trouble: z.string().max(200).nullable().default(null),
});

/** Throws `source_not_yours`: an agent says what its own machine's metadata says, and nothing else. */
function assertAgentsSource(name: string): void {
  if (findSource(name)?.sender === "agent") return;
  throw new RelevoError("source_not_yours", `An agent may not send notices of ${name}.`, {
    found: name,
    allowed: NOTICE_SOURCES.filter(({ sender }) => sender === "agent")
      .map((each) => each.name)
      .join(", "),
  });
}

/** Throws `node_not_yours`. */
function ownNode(node: string | null): string {
  if (node !== null) return node;
  throw new RelevoError("node_not_yours", "This agent may not speak for any node.", {
    found: null,
    allowed: "none: its token is bound to no node",
  });
}

/** Throws `notice_source_unknown`. */
function getSource(name: string): string {
  const source = findSource(name)?.name;
  if (source !== undefined) return source;
  throw new RelevoError("notice_source_unknown", "No such source of notices.", {
    found: name,
    allowed: NOTICE_SOURCES.map((each) => each.name).join(", "),
  });
}

function parseHeartbeat(raw: Uint8Array): z.output<typeof heartbeat> {
  let value: unknown;
  try {
    value = JSON.parse(decode(raw));
  } catch (cause) {
    throw new RelevoError("notice_malformed", "The heartbeat is not JSON.", { field: "body", cause });
  }
  const result = heartbeat.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new RelevoError("notice_malformed", `The heartbeat is wrong: ${issue?.message ?? "no valid form"}.`, {
    field: issue?.path.join(".") || "body",
    allowed: '{"from": "<node>", "everyMs": 30000, "trouble": null}',
  });
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function decode(raw: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(raw);
  } catch (cause) {
    throw new RelevoError("notice_malformed", "The body is not UTF-8 text.", { field: "body", cause });
  }
}
