/**
 * The agent's way to the controllers: the one that answered last is asked first, then the others. It needs nothing but their addresses: no API server.
 */
import { RelevoError } from "../kernel/errors.ts";
import type { AgentReport } from "../notices/agent-report.ts";
import type { HttpAnswer, HttpCaller } from "./http.ts";

export interface ControllersOptions {
  readonly http: HttpCaller;
  /** At least one. */
  readonly urls: readonly string[];
  /** Read at each call: it may be a file whose content changes. */
  readonly token: () => string | undefined;
  /** PEM, where the controllers' certificate is not one that the system trusts. */
  readonly ca?: string | undefined;
}

/** `kept`: durable. `refused`: it will never be taken. */
export type Delivery = "kept" | { readonly refused: string };

const TIMEOUT_MS = 3_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** A body that is wrong stays wrong. All else may pass: a store that is away, a token that is about to be renewed, a controller that is older than we are. */
const FINAL = [400, 413, 422];

export class Controllers {
  readonly #options: ControllersOptions;
  #preferred = 0;

  constructor(options: ControllersOptions) {
    this.#options = options;
  }

  /** Rejects when no controller kept it now. */
  async deliver(source: string, report: AgentReport, signal: AbortSignal): Promise<Delivery> {
    const answer = await this.#post(`/v1/notices/${source}`, report, signal);
    return answer.status < 300 ? "kept" : { refused: `status ${answer.status}: ${answer.text.slice(0, 200)}` };
  }

  async heartbeat(
    source: string,
    beat: { readonly from: string; readonly everyMs: number; readonly trouble: string | null },
    signal: AbortSignal,
  ): Promise<void> {
    const { status, text } = await this.#post(`/v1/sources/${source}/heartbeat`, beat, signal);
    if (status >= 300)
      throw new RelevoError("heartbeat_refused", "The controller takes no heartbeat.", { found: `${status} ${text.slice(0, 200)}` });
  }

  /** The first answer that is final; rejects with what the last controller said. */
  async #post(path: string, body: unknown, signal: AbortSignal): Promise<HttpAnswer> {
    const { urls } = this.#options;
    let trouble: unknown;
    for (let tries = 0; tries < urls.length; tries++) {
      const at = (this.#preferred + tries) % urls.length;
      try {
        const answer = await this.#call(`${urls[at]}${path}`, JSON.stringify(body), signal);
        if (answer.status < 300 || FINAL.includes(answer.status)) {
          this.#preferred = at;
          return answer;
        }
        trouble = new RelevoError("controller_refused", `The controller answered ${answer.status}.`, {
          class: "retryable",
          found: answer.text.slice(0, 200),
        });
      } catch (error) {
        signal.throwIfAborted();
        trouble = error;
      }
    }
    throw trouble;
  }

  #call(url: string, body: string, signal: AbortSignal): Promise<HttpAnswer> {
    const { http, token, ca } = this.#options;
    const bearer = token();
    const headers = { "content-type": "application/json", ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) };
    return http({ method: "POST", url, body, headers, timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES, ca }, signal);
  }
}
