/** Runs a case against an API server and tells of each answer what a client decides by, without what differs from run to run. */
import { Agent, type Dispatcher, request } from "undici";
import { systemClock as clock } from "../../src/kernel/system.ts";
import type { CallStep, Case, Step, Told, WatchStep } from "./case.ts";

export interface Server {
  readonly url: string;
  readonly token?: string;
}

/** Nothing more comes: an event is there within milliseconds. */
const QUIET_MS = 1_500;

export async function runCase(server: Server, { steps }: Case, namespace: string): Promise<readonly Told[]> {
  const run = new CaseRun(server, namespace);
  try {
    await run.begin();
    const told: Told[] = [];
    for (const step of steps) told.push(...(await run.step(step)));
    return told;
  } finally {
    await run.end();
  }
}

interface Kept {
  readonly rv: string;
  readonly uid: string;
  readonly continue: string;
}

class CaseRun {
  readonly #server: Server;
  readonly #namespace: string;
  readonly #agent = new Agent({ connect: { rejectUnauthorized: false }, allowH2: false });
  readonly #kept = new Map<string, Kept>();
  /** The last resourceVersion that was seen of an object, by its uid. */
  readonly #versions = new Map<string, bigint>();

  constructor(server: Server, namespace: string) {
    this.#server = server;
    this.#namespace = namespace;
  }

  async begin(): Promise<void> {
    const made = await this.#send({ call: "POST /api/v1/namespaces", body: { metadata: { name: this.#namespace } } });
    await made.body.dump();
    if (made.statusCode !== 201) throw new Error(`the namespace ${this.#namespace} could not be made: ${made.statusCode}`);
  }

  end(): Promise<void> {
    return this.#agent.destroy();
  }

  async step(step: Step): Promise<readonly Told[]> {
    return "watch" in step ? this.#watch(step) : [await this.#call(step)];
  }

  async #call(step: CallStep): Promise<Told> {
    const response = await this.#send(step);
    const text = await response.body.text();
    const body = parse(text);
    this.#keep(step, body);
    const headers = {
      ...(response.headers["retry-after"] === undefined ? {} : { retryAfter: String(response.headers["retry-after"]) }),
      ...(response.headers["warning"] === undefined ? {} : { warning: this.#plain(String(response.headers["warning"])) }),
    };
    const facts = body === undefined ? { text: text.trim().slice(0, 80) } : this.#facts(body, step.pick ?? []);
    return { status: response.statusCode, ...headers, ...facts };
  }

  async #watch(step: WatchStep): Promise<readonly Told[]> {
    const ending = new AbortController();
    const call: CallStep = { call: `GET ${step.watch}`, ...(step.accept === undefined ? {} : { accept: step.accept }) };
    const response = await this.#send(call, ending.signal);
    if (response.statusCode !== 200) {
      const body = parse(await response.body.text());
      return [{ watch: response.statusCode, ...(body === undefined ? {} : this.#facts(body, [])) }];
    }
    const lines: string[] = [];
    let isOver = false;
    const reading = read(response.body, lines).finally(() => (isOver = true));
    const during: Told[] = [];
    for (const each of step.during ?? []) during.push(await this.#call(each));
    for (let quiet = 0; lines.length < step.events && !isOver && quiet < QUIET_MS; quiet += 20) await clock.sleep(20);
    ending.abort();
    await reading;
    const events = lines.slice(0, step.events).map((line) => this.#event(line, step.pick ?? []));
    return [...during, { watch: 200, events, ends: isOver && lines.length < step.events }];
  }

  #event(line: string, pick: readonly string[]): unknown {
    const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: Json };
    return { type, ...this.#facts(object, pick) };
  }

  #send(step: CallStep, signal?: AbortSignal): Promise<Dispatcher.ResponseData> {
    const [method = "", path = ""] = this.#fill(step.call).split(" ");
    const body = typeof step.body === "string" ? step.body : JSON.stringify(step.body);
    const { token } = this.#server;
    return request(`${this.#server.url}${path}`, {
      method: method as Dispatcher.HttpMethod,
      dispatcher: this.#agent,
      headers: {
        accept: step.accept ?? "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(step.body === undefined ? {} : { "content-type": step.type ?? "application/json" }),
      },
      ...(step.body === undefined ? {} : { body: this.#fill(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  #fill(text: string): string {
    return text.replaceAll("$ns", this.#namespace).replaceAll(/\$(\w+)\.(rv|uid|continue)/g, (_all, name: string, what: keyof Kept) => {
      const kept = this.#kept.get(name);
      if (kept === undefined) throw new Error(`nothing was kept as ${name}`);
      return what === "continue" ? encodeURIComponent(kept.continue) : kept[what];
    });
  }

  #keep({ keep }: CallStep, body: Json | undefined): void {
    if (keep === undefined || body === undefined) return;
    const meta = (body["metadata"] ?? {}) as { resourceVersion?: string; uid?: string; continue?: string };
    this.#kept.set(keep, { rv: meta.resourceVersion ?? "", uid: meta.uid ?? "", continue: meta.continue ?? "" });
  }

  // ---- what is told

  #facts(body: Json, pick: readonly string[]): Told {
    const kind = String(body["kind"]);
    const picked =
      pick.length === 0 ? {} : { picked: Object.fromEntries(pick.map((path) => [path, this.#plainValue(valueAt(body, path))])) };
    if (kind === "Status") return { ...this.#statusFacts(body), ...picked };
    if (kind === "Table") return tableFacts(body);
    if (Array.isArray(body["items"])) return { ...this.#listFacts(body, body["items"] as readonly Json[]), ...picked };
    return { ...this.#objectFacts(body), ...picked };
  }

  #statusFacts({ status, reason, details, code }: Json): Told {
    const { name, group, kind, causes, retryAfterSeconds } = (details ?? {}) as Json;
    const told = { name: this.#plainValue(name), group, kind, retryAfterSeconds };
    const given = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
    return {
      said: status,
      ...(code === undefined ? {} : { code }),
      ...(reason === undefined ? {} : { reason }),
      ...(Object.keys(given).length === 0 ? {} : { details: given }),
      ...(causes === undefined ? {} : { causes: uniqueCauses(causes as readonly Json[]) }),
    };
  }

  #listFacts(body: Json, items: readonly Json[]): Told {
    const { continue: next, remainingItemCount } = (body["metadata"] ?? {}) as Json;
    return {
      kind: body["kind"],
      apiVersion: body["apiVersion"],
      items: items.map((item) => this.#plainValue(valueAt(item, "metadata.name"))),
      itemsHaveKind: items.some((item) => item["kind"] !== undefined),
      ...(next === undefined || next === "" ? {} : { continues: true }),
      ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
    };
  }

  #objectFacts(body: Json): Told {
    const meta = (body["metadata"] ?? {}) as Json;
    return {
      kind: body["kind"],
      apiVersion: body["apiVersion"],
      name: this.#plainValue(meta["generateName"] === undefined ? meta["name"] : `${String(meta["generateName"])}*`),
      version: this.#versionFact(meta),
      ...(meta["generation"] === undefined ? {} : { generation: meta["generation"] }),
      ...(meta["deletionTimestamp"] === undefined ? {} : { deleting: meta["deletionGracePeriodSeconds"] ?? true }),
      ...(meta["finalizers"] === undefined ? {} : { finalizers: meta["finalizers"] }),
      ...(valueAt(meta, "annotations.k8s\\.io/initial-events-end") === undefined ? {} : { initialEventsEnd: true }),
    };
  }

  /** The versions themselves mean nothing; whether one came after another does. */
  #versionFact({ uid, resourceVersion }: Json): string {
    if (typeof resourceVersion !== "string" || resourceVersion === "") return "none";
    if (typeof uid !== "string") return "some";
    const version = BigInt(resourceVersion);
    const last = this.#versions.get(uid);
    this.#versions.set(uid, last === undefined || version > last ? version : last);
    if (last === undefined) return "first";
    return version === last ? "same" : version > last ? "later" : "earlier";
  }

  #plain(text: string): string {
    return text
      .replaceAll(this.#namespace, "$ns")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (time) => time.replaceAll(/\d/g, "0"));
  }

  #plainValue(value: unknown): unknown {
    return value === undefined ? undefined : (JSON.parse(this.#plain(JSON.stringify(value)), withoutNull) as unknown);
  }
}

/** A field that is null and one that is not there are the same. */
const withoutNull = (_key: string, value: unknown): unknown => value ?? undefined;

type Json = Readonly<Record<string, unknown>>;

function parse(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined; // plain text is an answer too
  }
}

/** A real server says some of them twice. */
function uniqueCauses(causes: readonly Json[]): readonly unknown[] {
  const texts = causes.map(({ reason, field }) => JSON.stringify([reason, field]));
  return [...new Set(texts)].map((text) => JSON.parse(text) as unknown);
}

function tableFacts(body: Json): Told {
  const columns = (body["columnDefinitions"] ?? []) as readonly Json[];
  const rows = (body["rows"] ?? []) as readonly Json[];
  return {
    kind: "Table",
    columns: columns.map(({ name, priority, type }) => `${String(name)} ${String(type)}${priority === 0 ? "" : " wide"}`),
    rows: rows.length,
    rowsHold: valueAt(rows[0] ?? {}, "object.kind"),
  };
}

/** `spec.replicas`; a dot inside a name is written `\\.`. */
function valueAt(body: Json, path: string): unknown {
  return path
    .split(/(?<!\\)\./)
    .map((part) => part.replaceAll("\\.", "."))
    .reduce<unknown>((value, part) => (typeof value === "object" && value !== null ? (value as Json)[part] : undefined), body);
}

async function read(body: AsyncIterable<Uint8Array>, lines: string[]): Promise<void> {
  let rest = "";
  try {
    for await (const chunk of body) {
      const parts = `${rest}${Buffer.from(chunk).toString("utf8")}`.split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts.filter((line) => line !== ""));
    }
  } catch {
    // closed by us
  }
}
