/**
 * The gateway's own checks of its members (I11): an instance gets traffic from this replica only after this replica saw it answer. Fast while the
 * outcome is unknown or bad, at the policy's pace afterwards.
 */
import { Client } from "undici";
import type { Clock, Timer } from "../kernel/clock.ts";
import { reasonOf } from "./attempt.ts";
import type { GatewayCore } from "./core.ts";
import { LIMITS } from "./limits.ts";
import type { MemberState } from "./membership.ts";
import { INFO_PATH, infoFailure } from "./trino/health.ts";

/** Resolves to null when the member passed, else to a code; never rejects. `read` judges the text of an answer that is good by its status. */
export type HealthCheck = (member: MemberState, path: string, read?: ReadHealth) => Promise<string | null>;

/** Null: good, and of the process that was admitted as `bootId`. */
type ReadHealth = (text: string, bootId: string | null) => string | null;

interface Loop {
  timer: Timer | null;
  running: boolean;
  /** Another check was asked for while one ran. */
  again: boolean;
}

export class HealthChecks {
  readonly #core: GatewayCore;
  readonly #check: HealthCheck;
  readonly #loops = new Map<MemberState, Loop>();

  constructor(core: GatewayCore, check: HealthCheck) {
    this.#core = core;
    this.#check = check;
  }

  add(member: MemberState): void {
    const loop: Loop = { timer: null, running: false, again: false };
    this.#loops.set(member, loop);
    this.#run(member, loop);
  }

  remove(member: MemberState): void {
    this.#loops.get(member)?.timer?.cancel();
    this.#loops.delete(member);
  }

  now(member: MemberState): void {
    const loop = this.#loops.get(member);
    if (loop === undefined) return;
    if (loop.running) loop.again = true;
    else this.#run(member, loop);
  }

  stop(): void {
    for (const member of [...this.#loops.keys()]) this.remove(member);
  }

  #run(member: MemberState, loop: Loop): void {
    loop.timer?.cancel();
    loop.timer = null;
    loop.running = true;
    const policy = this.#core.membership.routes.get(member.route)?.policy;
    const startedAt = this.#core.clock.monotonic();
    const outcome = policy?.trino ? this.#check(member, INFO_PATH, infoFailure) : this.#check(member, policy?.healthPath ?? "/");
    void outcome.then((failure) => {
      if (this.#loops.get(member) !== loop) return;
      const { route, instance, incarnation } = member;
      loop.running = false;
      this.#core.step({ type: "checked", at: this.#core.clock.monotonic(), startedAt, route, instance, incarnation, failure });
      if (this.#loops.get(member) !== loop || loop.running) return;
      const everyMs = policy?.healthEveryMs ?? LIMITS.healthFastMs;
      const delayMs = loop.again ? 0 : member.health === "passing" ? everyMs : Math.min(LIMITS.healthFastMs, everyMs);
      loop.again = false;
      loop.timer = this.#core.clock.after(delayMs, () => this.#run(member, loop));
    });
  }
}

/** A check over HTTP on a connection of its own: 2xx and 3xx pass, and a process that says who it is must be the one that was admitted. */
export function httpHealthCheck(clock: Clock): HealthCheck {
  return async (member, path, read = processFailure) => {
    const host = member.host.includes(":") ? `[${member.host}]` : member.host;
    const client = new Client(`http://${host}:${member.port}`, {
      pipelining: 0,
      allowH2: false,
      connect: { timeout: LIMITS.healthTimeoutMs },
    });
    const limit = new AbortController();
    const timer = clock.after(LIMITS.healthTimeoutMs, () => limit.abort());
    try {
      const answer = await client.request({ method: "GET", path, signal: limit.signal });
      const text = await readStart(answer.body);
      if (answer.statusCode < 200 || answer.statusCode >= 400) return `status_${answer.statusCode}`;
      return read(text, member.bootId);
    } catch (error) {
      if (limit.signal.aborted) return "timeout";
      return reasonOf(error instanceof Error && "code" in error ? String(error.code) : "unknown");
    } finally {
      timer.cancel();
      client.destroy().catch(() => undefined); // the check is over either way
    }
  };
}

async function readStart(body: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const chunk of body) {
    text += chunk.toString("latin1");
    if (text.length > LIMITS.healthBodyBytes) return "";
  }
  return text;
}

function processFailure(text: string, bootId: string | null): string | null {
  return isOtherProcess(text, bootId) ? "boot_id_mismatch" : null;
}

function isOtherProcess(text: string, bootId: string | null): boolean {
  if (bootId === null || !text.startsWith("{")) return false;
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === "object" && said !== null && "bootId" in said && typeof said.bootId === "string" && said.bootId !== bootId;
  } catch {
    return false; // a health page of its own that is not JSON
  }
}
