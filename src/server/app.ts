/**
 * The controller's HTTP API. It adds forms, limits and words to the `ControlPlane`, and nothing else.
 *
 * 1. Every answer of an error is `{ error: { code, message, … } }`; the status comes from one registry (`error-codes.ts`).
 * 2. Everything but health, metrics and webhooks demands the bearer token, where there is one; without one it answers only to loopback names, so that a web
 *    page cannot reach it by a name of its own (DNS rebinding).
 * 3. Every body, stream and number of streams is bounded.
 */
import type { Socket } from "node:net";
import swagger from "@fastify/swagger";
import { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify, LogController } from "fastify";
import { hasZodFastifySchemaValidationErrors, jsonSchemaTransform, serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { isLoopback } from "../kernel/loopback.ts";
import type { LeaseTokens } from "../lease/token.ts";
import { problemsOf } from "../model/problems.ts";
import { assertMayBind, bearerOf, isSameSecret, type WebhookAccess } from "./access.ts";
import type { ControlPlane } from "./control-plane.ts";
import { httpStatusOf, toRelevoError } from "./error-codes.ts";
import { forwarding } from "./forward.ts";
import type { Logger } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { renderError } from "./render.ts";
import { gatewayRoutes } from "./routes/gateway.ts";
import { healthRoutes } from "./routes/health.ts";
import { leaseRoutes } from "./routes/leases.ts";
import { storeRoutes } from "./routes/store.ts";
import { noticeRoutes } from "./routes/notices.ts";
import { operatorRoutes } from "./routes/operator.ts";
import { recordRoutes } from "./routes/records.ts";
import { watchRoutes } from "./routes/watch.ts";
import { errorView } from "./views.ts";

export interface ServerOptions {
  readonly host: string;
  /** Null: none is demanded, which only loopback may. */
  readonly token: string | null;
  /** Of the senders of notices; the API's token is good too. */
  readonly webhookSecret: string | null;
  readonly version: string;
}

export interface ServerParts {
  readonly options: ServerOptions;
  readonly controlPlane: ControlPlane;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
  /** Tells whether an instance is who it says it is; absent: nobody can renew a writer lease here. */
  readonly leaseTokens?: LeaseTokens | undefined;
}

/** What the files of routes get. */
export interface RouteContext extends ServerParts {
  readonly webhook: WebhookAccess;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_CONNECTIONS = 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/** Of one part of a path; the longest that can mean something is a node's name, 253. */
const MAX_PARAM_LENGTH = 256;

declare module "fastify" {
  interface FastifyContextConfig {
    /** `token` unless said otherwise. */
    access?: "token" | "signed" | "lease" | "public";
  }
}

/** Not listening yet: `await app.listen({ host, port })`. Throws `bind_needs_token`. */
export async function createServer(parts: ServerParts): Promise<FastifyInstance> {
  const { options, metrics, log } = parts;
  assertMayBind(options.host, options.token);
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
    trustProxy: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // What the router and the parser refuse by themselves gets the same form as everything else.
    frameworkErrors: (thrown, request, reply: FastifyReply) => {
      answerError(thrown, request as FastifyRequest, (error, status) => reply.code(status).send(renderError(error)));
    },
    clientErrorHandler: refuseUnparsed,
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler((thrown, request, reply) =>
    answerError(thrown, request, (error, status) => {
      if (status === 503 || status === 429) reply.header("retry-after", "1");
      if (status === 401) reply.header("www-authenticate", "Bearer");
      return reply.code(status).send(renderError(error));
    }),
  );
  app.setNotFoundHandler((request) => {
    throw new RelevoError("route_not_found", "There is no such route.", {
      found: `${request.method} ${request.url}`,
      todo: "see /openapi.json",
    });
  });
  app.addHook("onRequest", async (request) => assertMayCall(options, request));
  app.addHook("preHandler", forwarding(parts.controlPlane, log));
  app.addHook("onResponse", async (request, reply) => {
    metrics.countApiRequest(request.method, request.routeOptions.url ?? "none", reply.statusCode);
    log.debug({ method: request.method, url: request.url, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }, "request");
  });
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Relevo", version: options.version, description: "The controller's API." },
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
      security: [{ token: [] }],
    },
    transform: withErrors,
  });
  const context: RouteContext = { ...parts, webhook: { secret: options.webhookSecret, token: options.token } };
  for (const routes of [healthRoutes, recordRoutes, operatorRoutes, noticeRoutes, watchRoutes, gatewayRoutes, leaseRoutes, storeRoutes])
    await app.register(routes, context);
  await app.ready();
  return app;
}

/** Every route can answer an error; written once here. */
const withErrors: typeof jsonSchemaTransform = (input) => {
  const schema = input.schema as { readonly response?: Readonly<Record<string, unknown>> } | undefined;
  const response = { ...schema?.response, default: errorView };
  return jsonSchemaTransform({ ...input, schema: { ...schema, response } } as typeof input);
};

function assertMayCall({ token, webhookSecret }: ServerOptions, request: FastifyRequest): void {
  const { access } = request.routeOptions.config;
  // With a lease the route checks the token that the instance was given: no page and no stranger has one.
  if (access === "public" || access === "lease") return;
  // The route itself checks the signature or the token; with neither, a notice is as good as any other call.
  if (access === "signed" && (token !== null || webhookSecret !== null)) return;
  if (token === null) {
    const name = request.hostname;
    if (!isLoopback(name))
      throw new RelevoError("host_not_allowed", "Without a token the API answers only to loopback names.", {
        found: name,
        allowed: "127.0.0.1, ::1, localhost",
      });
    refuseWebPages(request);
    return;
  }
  const given = bearerOf(request.headers.authorization);
  if (given !== undefined && isSameSecret(given, token)) return;
  throw new RelevoError("unauthorized", given === undefined ? "A bearer token is missing." : "The bearer token is wrong.", {
    allowed: "authorization: Bearer <token>",
    todo: "give the token of .relevo/run.json, or set RELEVO_TOKEN",
  });
}

/**
 * Without a token the page of any site, open in a browser on this machine, could ask on its user's behalf. Browsers say so by these headers; no other
 * client sends them. GET too: a stream makes a gateway replica known.
 */
function refuseWebPages({ headers }: FastifyRequest): void {
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  if (origin === undefined && (site === undefined || site === "none")) return; // none: typed into the browser's address bar
  throw new RelevoError("origin_not_allowed", "Without a token the API answers to no web page.", {
    found: origin ?? `sec-fetch-site: ${String(site)}`,
    allowed: "programs on this machine",
    todo: "set RELEVO_TOKEN and send it",
  });
}

/** Bytes that are no HTTP request: there is no request to log yet. */
function refuseUnparsed(thrown: Error & { readonly code?: string }, socket: Socket): void {
  if (thrown.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const [status, phrase, code, message] = UNPARSED[thrown.code ?? ""] ?? NO_HTTP;
  const body = JSON.stringify(renderError(new RelevoError(code, message)));
  const head = `HTTP/1.1 ${status} ${phrase}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
  socket.end(`${head}\r\n\r\n${body}`);
}

type Refusal = readonly [status: number, phrase: string, code: string, sentence: string];

const NO_HTTP: Refusal = [400, "Bad Request", "request_malformed", "This is no HTTP request."];
const UNPARSED: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "head_too_large", "The request's head is too large."],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "request_too_slow", "The request did not come within its time."],
};

function answerError<T>(thrown: unknown, request: FastifyRequest, answer: (error: RelevoError, status: number) => T): T {
  const error = hasZodFastifySchemaValidationErrors(thrown) ? inputError(thrown, request) : toRelevoError(thrown);
  const status = httpStatusOf(error);
  const about = { code: error.code, field: error.field, method: request.method, url: request.url, status };
  if (status >= 500) request.log.error({ ...about, err: error.code === "internal" ? error.cause : error }, error.message);
  else request.log.info(about, error.message);
  return answer(error, status);
}

/** Which field of the body or the query is wrong, in the words of `model/problems.ts`. */
function inputError(
  thrown: {
    readonly validationContext?: string | undefined;
    readonly cause?: unknown;
    readonly validation: readonly { readonly params?: unknown }[];
  },
  request: FastifyRequest,
): RelevoError {
  const isBody = thrown.validationContext === "body";
  const input = isBody ? request.body : thrown.validationContext === "params" ? request.params : request.query;
  const schemas = request.routeOptions.schema as Readonly<Record<string, unknown>> | undefined;
  const schema = schemas?.[thrown.validationContext ?? "body"];
  const result = schema instanceof z.ZodType ? schema.safeParse(input) : undefined;
  const code = isBody ? "body_invalid" : "query_invalid";
  const problem = schema instanceof z.ZodType && result?.success === false ? problemsOf(schema, result.error, input)[0] : undefined;
  if (problem === undefined) return new RelevoError(code, "The request is not valid.");
  const { sentence, field, found, allowed, todo } = problem;
  return new RelevoError(code, sentence, {
    field,
    found,
    ...(allowed === undefined ? {} : { allowed }),
    ...(todo === undefined ? {} : { todo }),
  });
}
