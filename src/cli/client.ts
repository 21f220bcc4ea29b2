/** The controller's HTTP API as the commands use it. */
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError, withoutControls } from "../kernel/errors.ts";
import { rfc1123Label } from "../model/names.ts";
import { SIGNATURE_HEADER, signBody } from "../server/access.ts";
import { errorView, type JournalView, journalView, type ReceiptView, receiptView } from "../server/views.ts";
import type { CliContext, GlobalOptions } from "./context.ts";
import { ControllerRefusal, UsageError } from "./exit.ts";
import { readRunFile } from "./run-file.ts";
import { tokenSourceOf } from "./token-source.ts";

const TIMEOUT_MS = 15_000;
const MAX_LINE_BYTES = 1024 * 1024;

export interface ClientOptions {
  readonly url: string;
  readonly token: string | null;
  readonly webhookSecret: string | null;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  /** Ends what is under way when the user interrupts. */
  readonly signal?: AbortSignal;
}

export class ControllerClient {
  readonly url: string;
  readonly #token: string | null;
  readonly #webhookSecret: string | null;
  readonly #fetch: typeof fetch;
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;

  constructor(options: ClientOptions) {
    this.url = options.url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#webhookSecret = options.webhookSecret;
    this.#fetch = options.fetch;
    this.#clock = options.clock;
    this.#signal = options.signal;
  }

  async get<T extends z.ZodType>(path: string, schema: T): Promise<z.output<T>> {
    return this.#parse(path, schema, await this.#call("GET", path, undefined));
  }

  async list<T extends z.ZodType>(path: string, item: T): Promise<readonly z.output<T>[]> {
    return (await this.get(path, z.object({ items: z.array(item) }))).items;
  }

  async text(path: string): Promise<string> {
    return String(await this.#call("GET", path, undefined, {}, (response) => response.text()));
  }

  async post<T extends z.ZodType>(path: string, body: unknown, schema: T): Promise<z.output<T>> {
    return this.#parse(path, schema, await this.#call("POST", path, JSON.stringify(body)));
  }

  async put<T extends z.ZodType>(path: string, body: unknown, schema: T): Promise<z.output<T>> {
    return this.#parse(path, schema, await this.#call("PUT", path, JSON.stringify(body)));
  }

  /** As a cloud's sender would: signed where a secret is known. */
  async notify(source: string, body: string): Promise<ReceiptView> {
    const signature: Record<string, string> =
      this.#webhookSecret === null ? {} : { [SIGNATURE_HEADER]: signBody(body, this.#webhookSecret) };
    const path = `/v1/notices/${source}`;
    return this.#parse(path, receiptView, await this.#call("POST", path, body, signature));
  }

  /** Transitions from now on; the first `undefined` says that the watch stands. Ends when the signal aborts or the controller ends it. */
  async *watch(pool: string | undefined, signal: AbortSignal): AsyncGenerator<JournalView | undefined> {
    const path = pool === undefined ? "/v1/watch" : `/v1/watch?pool=${encodeURIComponent(pool)}`;
    const response = await this.#fetchOrThrow(path, { headers: this.#headers(), signal });
    if (!response.ok) throw await this.#refusal(response);
    let buffered = "";
    try {
      for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        buffered += chunk;
        if (buffered.length > MAX_LINE_BYTES) throw new RelevoError("answer_invalid", "The controller sent a line that is too long.");
        const lines = buffered.split("\n");
        buffered = lines.pop() ?? "";
        for (const line of lines) yield journalView.safeParse(printable(JSON.parse(line))).data;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof RelevoError) throw error;
      throw this.#unreachable(error);
    }
  }

  async #call(
    method: string,
    path: string,
    body: string | undefined,
    more: Readonly<Record<string, string>> = {},
    read: (response: Response) => Promise<unknown> = (response) => response.json(),
  ): Promise<unknown> {
    const controller = new AbortController();
    const timer = this.#clock.after(TIMEOUT_MS, () => controller.abort());
    const signal = this.#signal === undefined ? controller.signal : AbortSignal.any([controller.signal, this.#signal]);
    try {
      const headers = body === undefined ? this.#headers() : { ...this.#headers(), "content-type": "application/json", ...more };
      const response = await this.#fetchOrThrow(path, {
        method,
        headers,
        signal,
        ...(body === undefined ? {} : { body }),
      });
      if (!response.ok && !(response.status === 503 && path === "/readyz")) throw await this.#refusal(response);
      return response.status === 204 ? null : await read(response);
    } finally {
      timer.cancel();
    }
  }

  async #fetchOrThrow(path: string, init: RequestInit): Promise<Response> {
    assertOwnPath(path);
    try {
      return await this.#fetch(`${this.url}${path}`, init);
    } catch (cause) {
      if (this.#signal?.aborted) throw new RelevoError("interrupted", "The command was interrupted.", { class: "cancelled" });
      throw this.#unreachable(cause);
    }
  }

  #unreachable(cause: unknown): RelevoError {
    return new RelevoError("controller_unreachable", `The controller does not answer at ${this.url}.`, {
      class: "retryable",
      cause,
      todo: "start it with npx relevo up, or name another with --server",
    });
  }

  #headers(): Record<string, string> {
    return this.#token === null ? {} : { authorization: `Bearer ${this.#token}` };
  }

  async #refusal(response: Response): Promise<RelevoError> {
    const body = errorView.safeParse(await response.json().catch(() => undefined));
    if (!body.success)
      return new ControllerRefusal(response.status, "answer_invalid", `What answers at ${this.url} is no controller of Relevo.`, {
        found: `status ${response.status}`,
      });
    const { code, message, field, found, allowed, todo } = body.data.error;
    return new ControllerRefusal(response.status, code, message, {
      field,
      found,
      ...(allowed === undefined ? {} : { allowed }),
      ...(todo === undefined ? {} : { todo }),
    });
  }

  #parse<T extends z.ZodType>(path: string, schema: T, body: unknown): z.output<T> {
    const parsed = schema.safeParse(printable(body));
    if (parsed.success) return parsed.data;
    throw new RelevoError("answer_invalid", `The controller's answer to ${path} is not understood.`, {
      found: parsed.error.issues[0]?.path.join("."),
      cause: parsed.error,
      todo: "use the relevo command of the controller's version",
    });
  }
}

/** Where the controller is: `--server`, RELEVO_SERVER, or what `relevo up` wrote. The token and the webhook's secret: RELEVO_TOKEN, RELEVO_WEBHOOK_SECRET, or the same file's. */
export function connect(context: CliContext, options: Pick<GlobalOptions, "server">): ControllerClient {
  const named = options.server ?? context.env.RELEVO_SERVER;
  const run = named === undefined ? readRunFile(context.cwd) : undefined;
  const url = named ?? run?.controllerUrl;
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
    throw new UsageError("server_invalid", `${options.server === undefined ? "RELEVO_SERVER" : "--server"} is not valid.`, {
      found: url,
      allowed: "a URL such as http://127.0.0.1:7070",
    });
  if (url === undefined)
    throw new RelevoError("controller_unknown", "No controller is known here.", {
      todo: "start one with npx relevo up in this directory, or name one with --server or RELEVO_SERVER",
    });
  const token = tokenSourceOf(context)() ?? run?.token ?? null;
  const webhookSecret = context.env.RELEVO_WEBHOOK_SECRET ?? run?.webhookSecret ?? null;
  return new ControllerClient({ url, token, webhookSecret, fetch: context.fetch, clock: context.clock, signal: context.signal });
}

/** `orders` → `default/orders`; a full key stays. Throws `name_invalid`: what is no name would lead to another route. */
export function poolKeyOf(name: string, namespace: string): string {
  const parts = name.includes("/") ? name.split("/") : [namespace, name];
  if (parts.length === 2 && parts.every((part) => rfc1123Label.safeParse(part).success)) return parts.join("/");
  throw new UsageError("name_invalid", "This is no name of a pool.", {
    found: name.includes("/") || rfc1123Label.safeParse(name).success ? parts.join("/") : name,
    allowed: "NAME or NAMESPACE/NAME, each of lower-case letters, digits and dashes, at most 63 characters",
  });
}

/** Whose words they are that the controller keeps is not known, and what is shown goes to a terminal. */
function printable(value: unknown): unknown {
  if (typeof value === "string") return withoutControls(value);
  if (Array.isArray(value)) return value.map(printable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [withoutControls(name), printable(each)]));
}

/** Encoding leaves dots as they are, and a segment of dots alone, or none, is taken out of a URL before it is called. */
function assertOwnPath(path: string): void {
  const [route = ""] = path.split("?");
  const odd = route.split("/").find((segment, at) => at > 0 && (segment === "" || /^(\.|%2e){1,2}$/i.test(segment)));
  if (odd !== undefined) throw new UsageError("name_invalid", "This is no name.", { found: odd, allowed: "what relevo get shows" });
}
