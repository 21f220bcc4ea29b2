/**
 * The controller's HTTP API. It adds forms, limits and words to the `ControlPlane`, and nothing else.
 *
 * 1. Every answer of an error is `{ error: { code, message, … } }`; the status comes from one registry (`error-codes.ts`).
 * 2. Each route has its row in `roles.ts`. Where there are tokens, everything but health and metrics demands one that is good for that row; without any it
 *    answers only to loopback names, so that a web page cannot reach it by a name of its own (DNS rebinding).
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
import { assertMayBind, bearerOf, notSigned, SIGNATURE_HEADER, type WebhookAccess } from "./access.ts";
import { ANYBODY_HERE, type Authenticator, assertMay, type Caller, firstOf, type TokenNeed } from "./callers.ts";
import type { ControlPlane } from "./control-plane.ts";
import { httpStatusOf, toRelevoError } from "./error-codes.ts";
import { FailedAttempts } from "./failed-attempts.ts";
import { forwarding } from "./forward.ts";
import type { Logger } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { oneToken } from "./one-token.ts";
import { renderError } from "./render.ts";
import { needOf } from "./roles.ts";
import { callerRoutes } from "./routes/caller.ts";
import { gatewayRoutes } from "./routes/gateway.ts";
import { healthRoutes } from "./routes/health.ts";
import { leaseRoutes } from "./routes/leases.ts";
import { storeRoutes } from "./routes/store.ts";
import { noticeRoutes } from "./routes/notices.ts";
import { operatorRoutes } from "./routes/operator.ts";
import { preflightRoutes } from "./routes/preflight.ts";
import { adoptionRoutes } from "./routes/adoption.ts";
import { suspensionRoutes } from "./routes/suspension.ts";
import { scaleRoutes } from "./routes/scale.ts";
import { recordRoutes } from "./routes/records.ts";
import { watchRoutes } from "./routes/watch.ts";
import { errorView } from "./views.ts";

export interface ServerOptions {
  readonly host: string;
  /** Good for everything. Null, and nobody else to tell who calls: none is demanded, which only loopback may. */
  readonly token: string | null;
  /** Of the senders of notices, or what tells it now; the API's token is good too. */
  readonly webhookSecret: string | (() => string | undefined) | null;
  readonly version: string;
}

export interface ServerParts {
  readonly options: ServerOptions;
  readonly controlPlane: ControlPlane;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
  /** Who else tells who calls, beside the one token. */
  readonly authenticators?: readonly Authenticator[] | undefined;
  /** Tells whether an instance is who it says it is; absent: nobody can renew a writer lease here. */
  readonly leaseTokens?: LeaseTokens | undefined;
}

/** What the files of routes get. */
export interface RouteContext extends ServerParts {
  readonly webhook: WebhookAccess;
  /** Whether the caller of a request that goes on is still let in; true also while nobody can tell. */
  readonly isStillLetIn: (request: FastifyRequest) => Promise<boolean>;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_CONNECTIONS = 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/** Of one part of a path; the longest that can mean something is a node's name, 253. */
const MAX_PARAM_LENGTH = 256;

declare module "fastify" {
  interface FastifyRequest {
    /** Who was let in. */
    caller: Caller;
  }
}

/** Nobody yet: what the route itself lets in (a signature, a lease's token) may do nothing else. */
const NOBODY: Caller = { kind: "person", name: null, role: null };

/** Not listening yet: `await app.listen({ host, port })`. Throws `bind_needs_token`. */
export async function createServer(parts: ServerParts): Promise<FastifyInstance> {
  const { options, metrics, log } = parts;
  const doors = [...(options.token === null ? [] : [oneToken(options.token)]), ...(parts.authenticators ?? [])];
  assertMayBind(options.host, doors.length > 0);
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
  app.decorateRequest("caller");
  app.addHook("onRoute", ({ method, url }) => {
    for (const each of [method].flat())
      if (needOf(each, url) === undefined) throw new RelevoError("route_without_role", `The route ${each} ${url} has no row in roles.ts.`);
  });
  const attempts = new FailedAttempts(parts.clock);
  const door = doors.length === 0 ? null : firstOf(doors);
  app.addHook("onRequest", async (request) => {
    request.caller = await letIn(request, door, attempts, options.webhookSecret !== null);
  });
  app.addHook("preHandler", forwarding(parts.controlPlane, log));
  app.addHook("onResponse", async (request, reply) => {
    if (reply.statusCode === 401 && isAttempt(request)) attempts.failed(request.ip);
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
  const isStillLetIn = (request: FastifyRequest) =>
    letIn(request, door, attempts, options.webhookSecret !== null).then(
      () => true,
      (error: unknown) => !(error instanceof RelevoError && (error.code === "unauthorized" || error.code === "role_missing")),
    );
  const context: RouteContext = { ...parts, webhook: { secret: options.webhookSecret, hasTokens: door !== null }, isStillLetIn };
  for (const routes of [
    healthRoutes,
    recordRoutes,
    operatorRoutes,
    scaleRoutes,
    adoptionRoutes,
    suspensionRoutes,
    preflightRoutes,
    noticeRoutes,
    watchRoutes,
    gatewayRoutes,
    leaseRoutes,
    storeRoutes,
    callerRoutes,
  ])
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

/** Throws `unauthorized`, `role_missing`, `too_many_failures`, `auth_unavailable`, and, where no token is demanded, `host_not_allowed` and `origin_not_allowed`. */
async function letIn(request: FastifyRequest, door: Authenticator | null, attempts: FailedAttempts, hasSecret: boolean): Promise<Caller> {
  const need = needOf(request.method, request.routeOptions.url) ?? "viewer"; // there is no such route, which only a caller hears
  if (need === "public") return NOBODY;
  // The route checks the token that the instance was given: no page and no stranger has one.
  if (need === "instance") return NOBODY;
  // The route checks the signature, which costs next to nothing: no stranger at the same address may keep an interruption's notice out.
  if (need === "sender" && hasSecret && (door === null || request.headers[SIGNATURE_HEADER] !== undefined)) return NOBODY;
  if (door === null) {
    refuseRebound(request);
    refuseWebPages(request);
    return ANYBODY_HERE;
  }
  const token = bearerOf(request.headers.authorization);
  if (token === undefined) throw unauthorized(need, "A bearer token is missing.", "The notice is not signed.", hasSecret);
  attempts.assertMayTry(request.ip, token);
  const caller = await door.identify(token, need);
  if (caller === undefined) throw unauthorized(need, "The bearer token is wrong.", "The notice's signature or token is wrong.", hasSecret);
  attempts.passed(token);
  assertMay(caller, need, `${request.method} ${request.routeOptions.url ?? "an unknown route"}`);
  return caller;
}

/** A guess at what lets one in. At a lease's door one instance must not stand in another's way, and a check there costs nothing. */
function isAttempt({ headers, method, routeOptions }: FastifyRequest): boolean {
  return headers.authorization !== undefined && needOf(method, routeOptions.url) !== "instance";
}

function unauthorized(need: TokenNeed, sentence: string, ofNotice: string, hasSecret: boolean): RelevoError {
  if (need === "sender") return notSigned(ofNotice, { hasSecret, hasTokens: true });
  return new RelevoError("unauthorized", sentence, {
    allowed: "authorization: Bearer <token>",
    todo: "give the token of .relevo/run.json, or set RELEVO_TOKEN",
  });
}

function refuseRebound({ hostname }: FastifyRequest): void {
  if (isLoopback(hostname)) return;
  throw new RelevoError("host_not_allowed", "Without a token the API answers only to loopback names.", {
    found: hostname,
    allowed: "127.0.0.1, ::1, localhost",
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
