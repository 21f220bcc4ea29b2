/**
 * The built-in queue over HTTP: adds forms, limits and the token to `JobQueues`, and nothing else. Everything but health and metrics demands a token. Every answer of an
 * error is `{ error: { code, message, … } }`.
 */
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type FastifyError, type FastifyInstance, type FastifyReply, fastify } from "fastify";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { describeError, RelevoError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { ChangeStreams } from "./change-streams.ts";
import { formsWithin, MAX_LISTED, parseForm, queueName } from "./forms.ts";
import { JobQueues } from "./job-queues.ts";
import { DEFAULT_LIMITS, type QueueLimits } from "./limits.ts";
import { metricsOf } from "./metrics.ts";
import { openQueueFile } from "./queue-file.ts";
import { Takers } from "./takers.ts";
import { QueueTokens } from "./tokens.ts";

const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Until a call has come in whole; not how long its answer may take. */
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 8_192;
const MAX_PARAM_LENGTH = 1_024;
const SWEEP_EVERY_MS = 200;
/** After a write that failed. */
const TRY_EVERY_MS = 1_000;
const FORGET_EVERY_MS = 60_000;
/** For what is in flight when the queue is asked to end. */
const STOP_MS = 5_000;
const CLOSE_IDLE_EVERY_MS = 20;

export interface QueueServerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** A file of its own, made with its folder when it is not there. */
  readonly store: string;
  readonly tokenFile: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: QueueLog;
  readonly limits?: Partial<QueueLimits>;
}

export interface QueueLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface QueueServer {
  readonly url: string;
  /** Answers who waits, takes no more, and closes the file. */
  close(): Promise<void>;
}

/** Errors: those of `openQueueFile` and `QueueTokens`, and what the system says of the address. */
export async function startQueueServer(options: QueueServerOptions): Promise<QueueServer> {
  const { clock, ids, log, host, port } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const tokens = new QueueTokens(options.tokenFile, clock, (error) => log.error({ event: "token_file" }, describeError(error)));
  const database = openQueueFile(options.store);
  const takers = new Takers(clock);
  const streams = new ChangeStreams(clock, limits.streams, (name) => (queues.has(name) ? queues.counts(name) : undefined));
  const queues = new JobQueues({
    database,
    clock,
    ids,
    limits,
    onChanged: (names) => {
      for (const name of names) {
        takers.wake(name, queues.has(name) ? queues.waiting(name) : Number.POSITIVE_INFINITY);
        streams.changed(name);
      }
    },
  });
  const app = makeApp({ tokens, queues, takers, streams, limits, clock, log });
  const sockets = socketsOf(app.server);
  const chores = new Chores(queues, clock, log);
  try {
    await queues.recover();
    await app.listen({ host, port });
  } catch (error) {
    await queues.close();
    database.close();
    throw error;
  }
  chores.start();
  const { port: bound } = app.server.address() as AddressInfo;
  let closing: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    chores.stop();
    takers.close();
    streams.close();
    await closeApp(app, sockets, clock);
    await queues.close();
    database.close();
  };
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`, close: () => (closing ??= stop()) };
}

/**
 * What is in flight is answered; connections that are kept open for a next call, which nobody will answer, are not waited for. Nor are those on which nothing was ever
 * said, which for Node are not idle: a client that gives a call up while it connects leaves one.
 */
async function closeApp(app: FastifyInstance, sockets: ReadonlySet<Socket>, clock: Clock): Promise<void> {
  const limit = clock.after(STOP_MS, () => app.server.closeAllConnections());
  let idle: Timer | undefined;
  const closeIdle = (): void => {
    app.server.closeIdleConnections();
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    idle = clock.after(CLOSE_IDLE_EVERY_MS, closeIdle);
  };
  const closed = app.close();
  closeIdle();
  await closed;
  idle?.cancel();
  limit.cancel();
}

/** Those that are open, as they come and go. */
function socketsOf(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}

interface AppParts {
  readonly tokens: QueueTokens;
  readonly queues: JobQueues;
  readonly takers: Takers;
  readonly streams: ChangeStreams;
  readonly limits: QueueLimits;
  readonly clock: Clock;
  readonly log: QueueLog;
}

function makeApp({ tokens, queues, takers, streams, limits, clock, log }: AppParts): FastifyInstance {
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (thrown, _request, reply: FastifyReply) => void reply.code(400).send(bodyOf(asRelevoError(thrown))),
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.setErrorHandler((thrown: FastifyError, _request, reply) => {
    const error = asRelevoError(thrown);
    const status = statusOf(error);
    if (status >= 500) log.error({ event: "call_failed", code: error.code, err: thrown }, describeError(error));
    if (status === 401) reply.header("www-authenticate", "Bearer");
    if (status === 429 || status === 503) reply.header("retry-after", "1");
    return reply.code(status).send(bodyOf(error));
  });
  app.setNotFoundHandler(({ method, url }) => {
    throw new RelevoError("route_not_found", "There is no such route.", { found: `${method} ${url}` });
  });
  app.get("/healthz", async () => {
    if (queues.trouble !== undefined) throw queues.trouble;
    return { ok: true };
  });
  app.get("/metrics", async (_request, reply) => reply.type("text/plain; version=0.0.4").send(metricsOf(queues.all())));
  void app.register(async (guarded) => {
    guarded.addHook("onRequest", async ({ headers }) => {
      if (!tokens.isGood(headers.authorization))
        throw new RelevoError("unauthorized", "A token of this queue is needed.", { allowed: "Authorization: Bearer TOKEN" });
    });
    addQueueRoutes(guarded, { queues, streams, limits });
    addJobRoutes(guarded, { queues, takers, limits, clock });
  });
  return app;
}

interface OfQueue {
  readonly Params: { readonly queue: string };
}
interface OfJob {
  readonly Params: { readonly queue: string; readonly id: string };
}

function addQueueRoutes(app: FastifyInstance, { queues, streams, limits }: Pick<AppParts, "queues" | "streams" | "limits">): void {
  const forms = formsWithin(limits);
  app.get("/v1/queues", async () => ({ queues: queues.all().slice(0, MAX_LISTED) }));
  app.put<OfQueue>("/v1/queues/:queue", async ({ params, body }) => queues.put(nameOf(params), parseForm(forms.put, body).maxAttempts));
  app.get<OfQueue>("/v1/queues/:queue", async ({ params }) => queues.counts(nameOf(params)));
  app.delete<OfQueue>("/v1/queues/:queue", async ({ params }) => {
    await queues.delete(nameOf(params));
    return {};
  });
  app.get<OfQueue>("/v1/queues/:queue/dead", async ({ params, query }) => ({
    jobs: queues.dead(nameOf(params), parseForm(forms.dead, query).limit),
  }));
  app.get<OfQueue>("/v1/queues/:queue/tagged", async ({ params, query }) =>
    queues.tagged(nameOf(params), parseForm(forms.tagged, query).prefix),
  );
  app.delete<OfQueue>("/v1/queues/:queue/tagged", async ({ params, query }) => ({
    removed: await queues.removeTagged(nameOf(params), parseForm(forms.tagged, query).prefix),
  }));
  app.get<OfQueue>("/v1/queues/:queue/changes", (request, reply) => {
    const name = nameOf(request.params);
    queues.counts(name);
    // One that is refused gets its answer: after the hijack nobody would give it.
    streams.open(name, reply.raw);
    reply.hijack();
  });
}

function addJobRoutes(
  app: FastifyInstance,
  { queues, takers, limits, clock }: Pick<AppParts, "queues" | "takers" | "limits" | "clock">,
): void {
  const forms = formsWithin(limits);
  app.post<OfQueue>("/v1/queues/:queue/jobs", async ({ params, body }) => ({
    ids: await queues.add(nameOf(params), parseForm(forms.add, body).jobs as Parameters<JobQueues["add"]>[1]),
  }));
  app.post<OfQueue>("/v1/queues/:queue/take", async ({ params, body }, reply) => {
    const { waitMs, ...form } = parseForm(forms.take, body);
    const name = nameOf(params);
    const gone = goneOf(reply.raw);
    const until = clock.monotonic() + waitMs;
    for (;;) {
      if (gone.aborted) {
        takers.wake(name, 1); // it may have been woken for a job that it will not take
        return { jobs: [] };
      }
      const jobs = await queues.take(name, withoutUndefined(form));
      if (gone.aborted) {
        // Nobody hears the answer: the jobs need not wait for the end of a lease.
        const reason = `${form.worker} was gone before it got the job`;
        for (const { id, lease } of jobs) await queues.return(name, id, { lease, reason, untried: true });
        return { jobs: [] };
      }
      const rest = until - clock.monotonic();
      if (jobs.length > 0 || rest <= 0 || takers.isClosed) return { jobs };
      if (queues.waiting(name) === 0) await takers.wait(name, rest, gone);
    }
  });
  app.post<OfJob>("/v1/queues/:queue/jobs/:id/extend", async ({ params, body }) => {
    const { lease, leaseMs, stamp } = parseForm(forms.extend, body);
    return queues.extend(nameOf(params), params.id, lease, leaseMs, stamp);
  });
  app.post<OfJob>("/v1/queues/:queue/jobs/:id/complete", async ({ params, body }) => {
    await queues.complete(nameOf(params), params.id, withoutUndefined(parseForm(forms.complete, body)));
    return {};
  });
  app.post<OfJob>("/v1/queues/:queue/jobs/:id/return", async ({ params, body }) =>
    queues.return(nameOf(params), params.id, withoutUndefined(parseForm(forms.return, body))),
  );
}

/** Leases run out and old rows go whether anybody calls or not. */
class Chores {
  readonly #queues: JobQueues;
  readonly #clock: Clock;
  readonly #log: QueueLog;
  readonly #over = new AbortController();

  constructor(queues: JobQueues, clock: Clock, log: QueueLog) {
    this.#queues = queues;
    this.#clock = clock;
    this.#log = log;
  }

  start(): void {
    void this.#every(SWEEP_EVERY_MS, () => this.#queues.sweep());
    // That it still fails is what /healthz says.
    void this.#every(TRY_EVERY_MS, () => this.#queues.tryToWrite().catch(() => undefined));
    void this.#every(FORGET_EVERY_MS, () => this.#queues.forgetOld());
  }

  stop(): void {
    this.#over.abort();
  }

  async #every(intervalMs: number, work: () => Promise<void>): Promise<void> {
    while (!this.#over.signal.aborted) {
      await this.#clock.sleep(intervalMs, this.#over.signal).catch(() => undefined); // it only rejects when it is over
      if (this.#over.signal.aborted) return;
      await work().catch((error: unknown) => this.#log.error({ event: "chore_failed", err: error }, describeError(error)));
    }
  }
}

function goneOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort());
  return controller.signal;
}

function nameOf({ queue }: { readonly queue: string }): string {
  return parseForm(queueName, queue);
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** An optional field that was not given is not there: what zod promises of its answers, in the words of the compiler. */
function withoutUndefined<T extends object>(form: T): Defined<T> {
  return form as Defined<T>;
}

const STATUS: Readonly<Record<string, number>> = {
  unauthorized: 401,
  route_not_found: 404,
  queue_missing: 404,
  queue_full: 429,
  too_many_queues: 429,
  too_many_writers: 429,
  too_many_streams: 429,
  body_invalid: 400,
};
const CLASS_STATUS = { conflict: 409, retryable: 503, terminal: 500, cancelled: 503 } as const;

function statusOf(error: RelevoError): number {
  if (error.code === "body_too_large") return 413;
  return STATUS[error.code] ?? CLASS_STATUS[error.class];
}

function asRelevoError(thrown: unknown): RelevoError {
  if (thrown instanceof RelevoError) return thrown;
  const { statusCode, message } = thrown as Partial<FastifyError>;
  if (statusCode === 413) return new RelevoError("body_too_large", "The body is too large.", { allowed: `${MAX_BODY_BYTES} bytes` });
  if (statusCode !== undefined && statusCode < 500) return new RelevoError("body_invalid", message ?? "The call cannot be read.");
  return new RelevoError("internal", "The queue failed.", { cause: thrown });
}

function bodyOf({ code, message, field, found, allowed, todo }: RelevoError): object {
  return { error: { code, message, field, found, allowed, todo } };
}
