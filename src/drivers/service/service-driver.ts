/** Stateless and stateful services: the instance protocol over HTTP, or nothing but a health path. */
import type { Socket } from "node:net";
import { Agent, request as send } from "undici";
import type { z } from "zod";
import { type Clock, formatInstant } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import {
  callAnswerSchema,
  type Health,
  healthSchema,
  type Identity,
  identitySchema,
  type Obligations,
  obligationsSchema,
  PROTOCOL_PREFIX,
  protocolErrorSchema,
} from "../../model/protocol.ts";
import { type Slots, slotsSchema } from "../../model/slots.ts";
import { authorityOf as at, faultOf, TIMED_OUT } from "../faults.ts";
import { getOnce } from "./get-once.ts";
import type { CallOutcome, InstanceCall, InstanceDriver, InstanceHealth, InstanceTarget } from "../port.ts";

export const CONNECT_LIMIT_MS = 1_000;
/** For reads: an instance that cannot say how it is within this time is not well. */
export const READ_LIMIT_MS = 2_000;
/** For calls, whose hooks may do work. */
export const CALL_LIMIT_MS = 10_000;
export const MAX_ANSWER_BYTES = 64 * 1024;
/** A thousand busy slots say more. */
const MAX_SLOTS_BYTES = 512 * 1024;
/** Calls are rare, and a kept connection would outlive the process that it led to. */
const KEEP_ALIVE_MS = 1;

interface Answer {
  readonly status: number;
  readonly text: string;
}

export class ServiceDriver implements InstanceDriver {
  readonly #clock: Clock;
  readonly #agent: Agent;
  readonly #reads = new Set<Socket>();

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
    this.#agent = new Agent({
      connect: { timeout: CONNECT_LIMIT_MS },
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: 0,
      maxResponseSize: MAX_ANSWER_BYTES,
    });
  }

  async identity(target: InstanceTarget): Promise<Identity | null> {
    if (target.protocol === "none") return null;
    return this.#read(target, "identity", identitySchema);
  }

  async health(target: InstanceTarget): Promise<InstanceHealth> {
    if (target.protocol === "none") return this.#plainHealth(target);
    const answer = await this.#get(target, `${PROTOCOL_PREFIX}/health`);
    if (answer.status !== 200 && answer.status !== 503) throw refusalOf(answer, target);
    return parseAnswer(answer, healthSchema, target) satisfies Health;
  }

  async obligations(target: InstanceTarget): Promise<Obligations | null> {
    if (target.protocol === "none") return null;
    const obligations = await this.#read(target, "obligations", obligationsSchema);
    // Another process knows nothing of what this one accepted: its zero must not pass for "drained".
    if (target.bootId !== null && obligations.bootId !== target.bootId)
      throw new RelevoError("boot_id_mismatch", `Another process answers at ${at(target)}.`, {
        class: "conflict",
        found: obligations.bootId,
        allowed: target.bootId,
      });
    return obligations;
  }

  /** Also of one that speaks nothing else of the protocol. */
  async slots(target: InstanceTarget): Promise<Slots | null> {
    const answer = await this.#get(target, `${PROTOCOL_PREFIX}/slots`, MAX_SLOTS_BYTES);
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refusalOf(answer, target);
    return parseAnswer(answer, slotsSchema, target);
  }

  prepare(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call(target, "prepare", call);
  }

  admit(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call(target, "admit", call);
  }

  drain(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call(target, "drain", call);
  }

  close(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome> {
    return this.#call(target, "close", call);
  }

  /** Frees the sockets; the driver cannot be used afterwards. */
  async destroy(): Promise<void> {
    for (const socket of this.#reads) socket.destroy();
    await this.#agent.destroy();
  }

  async #read<T>(target: InstanceTarget, what: string, schema: z.ZodType<T>): Promise<T> {
    const answer = await this.#get(target, `${PROTOCOL_PREFIX}/${what}`);
    if (answer.status !== 200) throw refusalOf(answer, target);
    return parseAnswer(answer, schema, target);
  }

  async #call(target: InstanceTarget, name: string, call: InstanceCall): Promise<CallOutcome> {
    if (target.protocol === "none") return { kind: "not_spoken" };
    const body = JSON.stringify({
      bootId: call.bootId,
      deadline: call.deadline === null ? null : formatInstant(call.deadline),
      ...(call.lease === undefined ? {} : { lease: call.lease }),
    });
    const answer = await this.#send(target, `${PROTOCOL_PREFIX}/${name}`, { step: call.step, body });
    if (answer.status !== 200) throw refusalOf(answer, target);
    const parsed = parseAnswer(answer, callAnswerSchema, target);
    if (parsed.bootId !== call.bootId || parsed.step !== call.step)
      throw new RelevoError("instance_answer_invalid", `The instance at ${at(target)} answered for another process or step.`, {
        found: parsed,
      });
    return { kind: "answered", answer: parsed };
  }

  async #plainHealth(target: InstanceTarget): Promise<InstanceHealth> {
    const { status } = await this.#get(target, target.healthPath);
    const ok = status >= 200 && status < 300;
    return { ok, bootId: null, reason: ok ? null : `status_${status}` };
  }

  async #get(target: InstanceTarget, path: string, answerBytesMax = MAX_ANSWER_BYTES): Promise<Answer> {
    try {
      return await getOnce({
        host: target.host,
        port: target.port,
        path,
        authority: at(target),
        connectLimitMs: CONNECT_LIMIT_MS,
        limitMs: READ_LIMIT_MS,
        answerBytesMax,
        clock: this.#clock,
        sockets: this.#reads,
      });
    } catch (error) {
      throw faultOf(error, at(target), READ_LIMIT_MS);
    }
  }

  async #send(target: InstanceTarget, path: string, call: { readonly step: string; readonly body: string }): Promise<Answer> {
    // One limit over everything from connecting to the last byte: undici's own are per phase, and a slow trickle would outlast them.
    const limit = new AbortController();
    const timer = this.#clock.after(CALL_LIMIT_MS, () => limit.abort(TIMED_OUT));
    try {
      const response = await send(`http://${at(target)}${path}`, {
        dispatcher: this.#agent,
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": call.step },
        body: call.body,
        headersTimeout: 0,
        bodyTimeout: 0,
        signal: limit.signal,
      });
      return { status: response.statusCode, text: await response.body.text() };
    } catch (error) {
      throw faultOf(error, at(target), CALL_LIMIT_MS);
    } finally {
      timer.cancel();
    }
  }
}

function parseAnswer<T>(answer: Answer, schema: z.ZodType<T>, target: InstanceTarget): T {
  let json: unknown;
  try {
    json = JSON.parse(answer.text);
  } catch (cause) {
    throw new RelevoError("instance_answer_invalid", `The instance at ${at(target)} did not answer with JSON.`, {
      found: answer.text.slice(0, 200),
      cause,
    });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RelevoError("instance_answer_invalid", `The instance at ${at(target)} does not answer as the protocol says.`, {
    found: `${issue?.path.join(".")}: ${issue?.message}`,
    allowed: "the instance protocol relevo/v1",
  });
}

/** 409s that mean: what the caller knows is out of date. */
const CONFLICTS = ["boot_id_mismatch", "wrong_state", "step_conflict"];

/** An explicit refusal: its own code when it is one of the protocol's conflicts, else by status. */
function refusalOf(answer: Answer, target: InstanceTarget): RelevoError {
  const error = parseError(answer.text);
  const found = error === undefined ? `status ${answer.status}` : `status ${answer.status}, ${error.code}: ${error.message}`;
  if (answer.status === 409 && error !== undefined && CONFLICTS.includes(error.code))
    return new RelevoError(error.code, error.message, { class: "conflict", found });
  if (answer.status >= 500)
    return new RelevoError("instance_failed", `The instance at ${at(target)} failed.`, { class: "retryable", found });
  return new RelevoError("instance_refused", `The instance at ${at(target)} refused the call.`, { found });
}

function parseError(text: string): { readonly code: string; readonly message: string } | undefined {
  try {
    return protocolErrorSchema.safeParse(JSON.parse(text)).data?.error;
  } catch {
    return undefined; // an error page of something else: the status says enough
  }
}
