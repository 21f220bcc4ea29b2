/** Azure's scheduled events. The first question switches them on for the machine, which takes up to two minutes. */
import { RelevoError } from "../../kernel/errors.ts";
import type { MachineIdentity } from "../../notices/agent-report.ts";
import { AZURE_PATH, approvable, type AzureDocument, readAzure, saidOfMachine } from "../../notices/azure/read.ts";
import { readJson, readObject, readText } from "../../notices/read-metadata.ts";
import type { Look } from "../../notices/standing.ts";
import type { HttpAnswer, HttpCall, HttpCaller } from "../http.ts";
import { type Cloud, MAX_METADATA_BYTES, METADATA_TIMEOUT_MS, sentenceOf, type Watch } from "./cloud.ts";

export interface AzureOptions {
  readonly http: HttpCaller;
  readonly baseUrl: string;
  readonly everyMs?: number;
  /** Absent: nothing is ever approved. */
  readonly approval?: {
    /** Machines of others that may be started along. */
    readonly agreed: readonly string[];
    /** That nothing of ours runs on this machine, as known now. */
    readonly isEmpty: () => boolean;
    readonly onApproved: (events: readonly string[]) => void;
  };
}

/** Azure's shortest notice is 30 s. */
const EVERY_MS = 2_000;
const FIRST_TIMEOUT_MS = 130_000;
const EVENTS = "/metadata/scheduledevents?api-version=2020-07-01";
const COMPUTE = "/metadata/instance/compute?api-version=2021-02-01";

export class AzureCloud implements Cloud {
  readonly name = "azure";
  readonly source = "azure";
  readonly watches: readonly Watch[];
  readonly #options: AzureOptions;
  #machineName: string | undefined;
  #isSwitchedOn = false;

  constructor(options: AzureOptions) {
    this.#options = options;
    this.watches = [{ everyMs: options.everyMs ?? EVERY_MS, goneAfter: 2, look: async (signal) => [await this.#look(signal)] }];
  }

  async identify(signal: AbortSignal): Promise<MachineIdentity> {
    const { status, text } = await this.#call({ url: COMPUTE, timeoutMs: METADATA_TIMEOUT_MS }, signal);
    if (status !== 200)
      throw new RelevoError("metadata_refused", "Azure's metadata says nothing of the machine.", {
        class: "retryable",
        found: `status ${status}`,
      });
    const compute = readObject(readJson(text), "the machine");
    const resourceId = compute["resourceId"];
    if (typeof resourceId !== "string" || !/^\/subscriptions\/[^/]+\/resourcegroups\/.+\/virtualmachines\/[^/]+$/i.test(resourceId))
      throw new RelevoError("metadata_odd", "Azure's metadata names no machine.", { found: resourceId });
    this.#machineName = readText(compute["name"], "name");
    return { providerID: `azure://${resourceId}`, machineName: this.#machineName };
  }

  async #look(signal: AbortSignal): Promise<Look> {
    const kind = AZURE_PATH;
    const timeoutMs = this.#isSwitchedOn ? METADATA_TIMEOUT_MS : FIRST_TIMEOUT_MS;
    try {
      const { status, text } = await this.#call({ url: EVENTS, timeoutMs }, signal);
      if (status !== 200) return { kind, failed: `${kind}: status ${status}` };
      const document = readAzure(text);
      this.#isSwitchedOn = true;
      if (this.#machineName === undefined) return { kind, failed: `${kind}: the machine's own name is not known yet` };
      await this.#approve(document, this.#machineName, signal);
      return { kind, said: saidOfMachine(document, this.#machineName) };
    } catch (error) {
      signal.throwIfAborted();
      return { kind, failed: `${kind}: ${sentenceOf(error)}` };
    }
  }

  /** What was approved is listed as started from then on. Nobody is harmed when it fails: the event comes at its time. */
  async #approve(document: AzureDocument, machineName: string, signal: AbortSignal): Promise<void> {
    const { approval } = this.#options;
    if (approval === undefined) return;
    const events = approvable(document, { machineName, agreed: approval.agreed, isEmpty: approval.isEmpty() });
    if (events.length === 0) return;
    const body = JSON.stringify({ StartRequests: events.map((EventId) => ({ EventId })) });
    const { status } = await this.#call({ method: "POST", url: EVENTS, body, timeoutMs: METADATA_TIMEOUT_MS }, signal);
    if (status === 200) approval.onApproved(events);
  }

  #call({ url, ...call }: Pick<HttpCall, "url" | "method" | "body" | "timeoutMs">, signal: AbortSignal): Promise<HttpAnswer> {
    const { http, baseUrl } = this.#options;
    return http(
      {
        ...call,
        url: `${baseUrl}${url}`,
        headers: { metadata: "true", ...(call.body === undefined ? {} : { "content-type": "application/json" }) },
        maxBytes: MAX_METADATA_BYTES,
      },
      signal,
    );
  }
}
