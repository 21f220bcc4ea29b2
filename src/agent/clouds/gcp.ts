/**
 * GCP's metadata server: each path is waited at until it changes, with the tag of what was seen last. The wait is short, so that a connection that died in
 * silence costs no notice; after a failure the first look does not wait.
 */
import { RelevoError } from "../../kernel/errors.ts";
import type { MachineIdentity } from "../../notices/agent-report.ts";
import { GCP_ALL_PATHS, type GcpPath, readGcp } from "../../notices/gcp/read.ts";
import type { Look } from "../../notices/standing.ts";
import type { HttpAnswer, HttpCaller } from "../http.ts";
import { type Cloud, MAX_METADATA_BYTES, METADATA_TIMEOUT_MS, sentenceOf, type Watch } from "./cloud.ts";

export interface GcpOptions {
  readonly http: HttpCaller;
  readonly baseUrl: string;
  readonly waitSeconds?: number;
}

const WAIT_SECONDS = 10;
/** Between two looks, so that a server that does not wait is not called in a loop. What changes meanwhile is told by the next look, for it has the tag. */
const REST_MS = 250;

export class GcpCloud implements Cloud {
  readonly name = "gcp";
  readonly source = "gcp";
  readonly watches: readonly Watch[];
  readonly #options: GcpOptions;
  readonly #tags = new Map<GcpPath, string>();

  constructor(options: GcpOptions) {
    this.#options = options;
    this.watches = GCP_ALL_PATHS.map((path) => ({
      everyMs: REST_MS,
      goneAfter: 1,
      look: async (signal) => [await this.#look(path, signal)],
    }));
  }

  async identify(signal: AbortSignal): Promise<MachineIdentity> {
    const [project, zone, name] = await Promise.all(
      ["project/project-id", "instance/zone", "instance/name"].map((path) => this.#text(path, signal)),
    );
    // `projects/123456789/zones/europe-west1-b`
    const providerID = `gce://${project}/${zone?.split("/").at(-1)}/${name}`;
    if (/^gce:\/\/[a-z0-9.:-]+\/[a-z0-9-]+\/[a-z0-9-]+$/.test(providerID)) return { providerID };
    throw new RelevoError("metadata_odd", "GCP's metadata names no machine.", { found: providerID });
  }

  async #look(kind: GcpPath, signal: AbortSignal): Promise<Look> {
    const { waitSeconds = WAIT_SECONDS } = this.#options;
    const tag = this.#tags.get(kind);
    this.#tags.delete(kind);
    try {
      const query = tag === undefined ? "" : `?wait_for_change=true&timeout_sec=${waitSeconds}&last_etag=${encodeURIComponent(tag)}`;
      const timeoutMs = METADATA_TIMEOUT_MS + (tag === undefined ? 0 : waitSeconds * 1_000);
      const answer = await this.#ask(`${kind}${query}`, timeoutMs, signal);
      if (answer.status !== 200) return { kind, failed: `${kind}: status ${answer.status}` };
      const said = readGcp(kind, answer.text);
      const { etag } = answer.headers;
      // Without a tag each look would answer at once, for ever.
      if (etag === undefined || etag.length > 256) return { kind, failed: `${kind}: no tag` };
      this.#tags.set(kind, etag);
      return { kind, said };
    } catch (error) {
      signal.throwIfAborted();
      return { kind, failed: `${kind}: ${sentenceOf(error)}` };
    }
  }

  async #text(path: string, signal: AbortSignal): Promise<string> {
    const { status, text } = await this.#ask(path, METADATA_TIMEOUT_MS, signal);
    if (status === 200) return text.trim();
    throw new RelevoError("metadata_refused", `GCP's metadata has no ${path}.`, { class: "retryable", found: `status ${status}` });
  }

  /** Whoever answers without the flavour is another server at the same address. */
  async #ask(path: string, timeoutMs: number, signal: AbortSignal): Promise<HttpAnswer> {
    const { http, baseUrl } = this.#options;
    const answer = await http(
      { url: `${baseUrl}/computeMetadata/v1/${path}`, headers: { "metadata-flavor": "Google" }, timeoutMs, maxBytes: MAX_METADATA_BYTES },
      signal,
    );
    if (answer.headers["metadata-flavor"] === "Google") return answer;
    throw new RelevoError("metadata_odd", "What answers is not GCP's metadata server.", { found: `status ${answer.status}` });
  }
}
