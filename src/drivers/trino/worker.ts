/** A worker's own door: what state it is in, and the change of it. The coordinator's table of nodes says the same up to 8 s later. */
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { type NodeInfo, parseAs } from "./answers.ts";
import { readInfo } from "./engine.ts";
import { type HttpAnswer, refusalOf, TrinoHttp } from "./http.ts";

const LIMIT_MS = 5_000;
const BYTES_MAX = 64 * 1024;

/** `DRAINED` follows `DRAINING`; of `SHUTTING_DOWN` nothing leads back. */
const WORKER_STATES = ["ACTIVE", "INACTIVE", "DRAINING", "DRAINED", "SHUTTING_DOWN"] as const;
export type WorkerState = (typeof WORKER_STATES)[number];
type WantedState = "ACTIVE" | "DRAINING" | "SHUTTING_DOWN";

/** No state, so that it changes nothing: who may change the state is told so, who may not is refused before. */
const NO_STATE = "RELEVO_PROBE";

export interface Worker {
  info(): Promise<NodeInfo>;
  state(): Promise<WorkerState>;
  /**
   * Errors besides those of drivers/port.ts: `trino_shutdown_forbidden` (terminal), `wrong_state` (conflict: nothing leads from its state to that one),
   * `trino_not_a_worker` (terminal).
   */
  setState(state: WantedState): Promise<void>;
  /** Whether it may be told; changes nothing. */
  maySetState(): Promise<boolean>;
}

export interface WorkerOptions {
  /** `http://host:port` of the worker. */
  readonly base: string;
  readonly user: string;
  readonly clock: Clock;
  readonly http?: TrinoHttp;
}

export function workerAt({ base, user, clock, http = new TrinoHttp(clock) }: WorkerOptions): Worker {
  const put = (state: string): Promise<HttpAnswer> =>
    http.send(`${base}/v1/info/state`, {
      method: "PUT",
      headers: { "x-trino-user": user, "content-type": "application/json" },
      body: JSON.stringify(state),
      limitMs: LIMIT_MS,
      bytesMax: BYTES_MAX,
    });

  return {
    info: () => readInfo(base, http),

    async state() {
      const answer = await http.send(`${base}/v1/info/state`, { limitMs: LIMIT_MS, bytesMax: BYTES_MAX });
      if (answer.status !== 200) throw refusalOf(answer, base);
      return parseAs(answer.text, z.enum(WORKER_STATES), base);
    },

    async setState(state) {
      const answer = await put(state);
      if (answer.status < 200 || answer.status >= 300) throw unchanged(answer, { base, user, state });
    },

    async maySetState() {
      const answer = await put(NO_STATE);
      if (answer.status === 401 || answer.status === 403) return false;
      if (answer.status === 400) return true;
      throw refusalOf(answer, base);
    },
  };
}

interface Wanted {
  readonly base: string;
  readonly user: string;
  readonly state: WantedState;
}

function unchanged(answer: HttpAnswer, { base, user, state }: Wanted): RelevoError {
  const found = `status ${answer.status}: ${answer.text.slice(0, 300)}`;
  if (answer.status === 401 || answer.status === 403) return forbidden(base, user, found);
  if (answer.status === 400 && answer.text.includes("Invalid state transition"))
    return new RelevoError("wrong_state", `The worker at ${base} cannot become ${state} any more.`, { class: "conflict", found });
  if (/Cannot (drain|shutdown) coordinator/.test(answer.text))
    return new RelevoError("trino_not_a_worker", `What runs at ${base} is a coordinator: it cannot be drained.`, { found });
  return refusalOf(answer, base);
}

/** What must be configured, and where: the permission of the coordinator does not count here. */
function forbidden(base: string, user: string, found: string): RelevoError {
  return new RelevoError("trino_shutdown_forbidden", `The worker at ${base} lets nobody change its state.`, {
    found,
    allowed: `PUT /v1/info/state by the user ${user}`,
    todo:
      "Allow it on the worker itself: etc/access-control.properties with access-control.name=file and security.config-file=FILE, and in that file " +
      JSON.stringify({ system_information: [{ user, allow: ["read", "write"] }] }),
  });
}
