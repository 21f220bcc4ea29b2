/** `/relevo/v1/*` over HTTP: routing, bounded bodies, replay of answers. What the calls do is the instance's. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Instant } from "../kernel/clock.ts";
import type { Health, Identity, Obligations } from "../model/protocol.ts";
import type { Slots } from "../model/slots.ts";
import type { LeaseAccess } from "./lease-call.ts";
import { type CallName, isCallName, parseCallBody, PREFIX, ProtocolRefusal } from "./wire.ts";

export const MAX_CALL_BODY_BYTES = 4_096;
export const MAX_KEY_LENGTH = 256;
/** Answers kept for replay; an instance gets a handful of calls in its life, so the oldest is never asked for again. */
export const MAX_REPLAYS = 256;

/** What the endpoint needs of the instance. */
export interface CallTarget {
  readonly bootId: string;
  identity(): Identity;
  obligations(): Obligations;
  health(): Promise<Health>;
  /** Null: it has none. */
  slots(): Slots | null;
  perform(call: CallName, step: string, deadline: Instant | null, lease?: LeaseAccess): Promise<Identity["state"]>;
}

interface Replay {
  /** The call and its body: the same key with another one is a conflict. */
  readonly fingerprint: string;
  readonly answer: Promise<unknown>;
}

export class ProtocolEndpoint {
  readonly #target: CallTarget;
  readonly #replays = new Map<string, Replay>();

  constructor(target: CallTarget) {
    this.#target = target;
  }

  /** Answers a request whose path begins with the protocol's prefix; never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { status, body } = await this.#dispatch(request);
      send(response, status, body);
    } catch (error) {
      const refusal = error instanceof ProtocolRefusal ? error : new ProtocolRefusal(500, "call_failed", sentenceOf(error));
      // What was not read of the request would be taken for the next one.
      if (!request.complete) response.setHeader("connection", "close");
      send(response, refusal.status, { error: { code: refusal.code, message: refusal.message } });
    }
  }

  async #dispatch(request: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
    const path = (request.url ?? "").split("?", 1)[0]?.slice(PREFIX.length + 1) ?? "";
    if (isCallName(path)) {
      allowMethods(request, ["POST"]);
      return { status: 200, body: await this.#call(path, request) };
    }
    if (!["identity", "obligations", "health", "slots"].includes(path)) throw unknownCall();
    allowMethods(request, ["GET", "HEAD"]);
    if (path === "slots") return { status: 200, body: this.#target.slots() ?? refuseSlots() };
    if (path === "identity") return { status: 200, body: this.#target.identity() };
    if (path === "obligations") return { status: 200, body: this.#target.obligations() };
    const health = await this.#target.health();
    return { status: health.ok ? 200 : 503, body: health };
  }

  async #call(call: CallName, request: IncomingMessage): Promise<unknown> {
    const step = request.headers["idempotency-key"];
    if (typeof step !== "string" || step === "" || step.length > MAX_KEY_LENGTH)
      throw new ProtocolRefusal(400, "idempotency_key_invalid", `A call needs an Idempotency-Key of at most ${MAX_KEY_LENGTH} characters.`);
    const { bootId, deadline, lease } = parseCallBody(await readBody(request));
    if (bootId !== this.#target.bootId)
      throw new ProtocolRefusal(
        409,
        "boot_id_mismatch",
        `The call means ${bootId.slice(0, MAX_KEY_LENGTH)}, but this process is ${this.#target.bootId}.`,
      );
    return this.#once(step, `${call} ${deadline}`, async () => {
      const state = await this.#target.perform(call, step, deadline, lease);
      return { bootId, step, state };
    });
  }

  /** The first answer again for the same key; a failure is not kept, so that the same step can be tried again. */
  #once(key: string, fingerprint: string, perform: () => Promise<unknown>): Promise<unknown> {
    const known = this.#replays.get(key);
    if (known !== undefined) {
      if (known.fingerprint !== fingerprint)
        throw new ProtocolRefusal(409, "step_conflict", "The same Idempotency-Key came with another call.");
      return known.answer;
    }
    const answer = perform();
    this.#replays.set(key, { fingerprint, answer });
    answer.catch(() => this.#replays.delete(key));
    const oldest = this.#replays.keys().next();
    if (this.#replays.size > MAX_REPLAYS && !oldest.done) this.#replays.delete(oldest.value);
    return answer;
  }
}

function unknownCall(): ProtocolRefusal {
  return new ProtocolRefusal(404, "unknown_call", "The instance protocol has no such call.");
}

/** To the caller it is the same whether an instance has no slots or does not know the word. */
function refuseSlots(): never {
  throw new ProtocolRefusal(404, "no_slots", "The instance takes its work by requests: it has no slots.");
}

function allowMethods(request: IncomingMessage, allowed: readonly string[]): void {
  if (!allowed.includes(request.method ?? ""))
    throw new ProtocolRefusal(405, "method_not_allowed", `Only ${allowed.join(" and ")} is possible here.`);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not destroyed on the way out: the refusal must still be written to the same socket.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_CALL_BODY_BYTES)
      throw new ProtocolRefusal(413, "body_too_large", `The body is larger than ${MAX_CALL_BODY_BYTES} bytes.`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
  });
  response.end(text);
}

function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
