/**
 * Who we are to the API server, asked before each request. What rotates is read again: token and certificate files after a minute, as the kubelet renews
 * them long before they run out; an exec plugin's answer when it says so, or when the server answered 401.
 */
import type { RequestOptions } from "node:https";
import type { KubeConfig, User } from "@kubernetes/client-node";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";

/** How a connection is made: another of these is another connection. */
export interface KubeTls {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
}

export interface KubeIdentity {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: KubeTls;
}

export interface KubeCredentials {
  /** Rejects with the retryable `kube_credentials`. */
  current(): Promise<KubeIdentity>;
  /** The server does not know who we are: what is kept is forgotten. False when that was done just now and did not help. */
  refused(): boolean;
}

const KEPT_MS = 60_000;
const REFUSED_AGAIN_MS = 10_000;
const PLUGIN_LIMIT_MS = 30_000;
/** The library cannot end it; after so long another one is started, or one that hangs for ever would lock us out for ever. */
const PLUGIN_GIVEN_UP_MS = 300_000;

export class KubeconfigCredentials implements KubeCredentials {
  readonly #load: () => Promise<KubeConfig>;
  readonly #clock: Clock;
  #config: { readonly config: KubeConfig; readonly readAt: number } | undefined;
  #asking: { readonly answer: Promise<KubeIdentity>; readonly since: number } | undefined;
  #refusedAt = Number.NEGATIVE_INFINITY;

  constructor(load: () => Promise<KubeConfig>, clock: Clock) {
    this.#load = load;
    this.#clock = clock;
  }

  /** Many calls at once ask once: a plugin is a process. One that hangs is not started again beside itself, for some minutes. */
  async current(): Promise<KubeIdentity> {
    const answer = this.#askOnce();
    const ending = new AbortController();
    const limit = this.#clock.sleep(PLUGIN_LIMIT_MS, ending.signal).then(() => {
      throw new Error(`no answer after ${PLUGIN_LIMIT_MS / 1_000} s`);
    });
    try {
      return await Promise.race([answer, limit]);
    } catch (cause) {
      const found = cause instanceof Error ? cause.message : String(cause);
      const what = "the credentials for the API server could not be had";
      throw new RelevoError("kube_credentials", what, { class: "retryable", found, cause });
    } finally {
      limit.catch(() => undefined); // aborted below: nobody waits for it any more
      ending.abort(new Error("answered"));
    }
  }

  #askOnce(): Promise<KubeIdentity> {
    const now = this.#clock.monotonic();
    if (this.#asking !== undefined && now - this.#asking.since < PLUGIN_GIVEN_UP_MS) return this.#asking.answer;
    const asking = {
      since: now,
      answer: this.#ask().finally(() => {
        if (this.#asking === asking) this.#asking = undefined;
      }),
    };
    this.#asking = asking;
    return asking.answer;
  }

  refused(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#refusedAt < REFUSED_AGAIN_MS) return false;
    this.#refusedAt = now;
    this.#config = undefined;
    return true;
  }

  async #ask(): Promise<KubeIdentity> {
    const now = this.#clock.monotonic();
    const isOld = this.#config !== undefined && now - this.#config.readAt >= KEPT_MS && !hasPlugin(this.#config.config.getCurrentUser());
    if (this.#config === undefined || isOld) this.#config = { config: await this.#load(), readAt: now };
    return identityOf(this.#config.config);
  }
}

/** Plain HTTP carries a token that the file itself holds, and nothing that is worth more. */
async function identityOf(config: KubeConfig): Promise<KubeIdentity> {
  const user = config.getCurrentUser();
  const isSecure = config.getCurrentCluster()?.server.startsWith("https:") ?? false;
  if (!isSecure) return { headers: user?.token ? { authorization: `Bearer ${user.token}` } : {}, tls: {} };
  if (hasPlugin(user)) tellPlugin(user, config);
  const options: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {}))
    if (typeof value === "string") headers[name.toLowerCase()] = value.trim();
  if (typeof options.auth === "string") headers["authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  return { headers, tls: { ca: material(options.ca), cert: material(options.cert), key: material(options.key) } };
}

function material(value: unknown): string | Buffer | undefined {
  return typeof value === "string" || Buffer.isBuffer(value) ? value : undefined;
}

interface ExecPlugin {
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
  env?: { readonly name: string; readonly value: string }[] | null;
}

function hasPlugin(user: User | null): user is User & { readonly exec: ExecPlugin } {
  return typeof user?.exec === "object" && user.exec !== null;
}

/** Plugins want to be told how they are called; the library leaves that out. */
function tellPlugin({ exec }: { readonly exec: ExecPlugin }, config: KubeConfig): void {
  const name = "KUBERNETES_EXEC_INFO";
  if (exec.env?.some((each) => each.name === name)) return;
  const { server, caData, tlsServerName, skipTLSVerify } = config.getCurrentCluster() ?? {};
  const cluster = {
    server,
    "certificate-authority-data": caData,
    "tls-server-name": tlsServerName,
    "insecure-skip-tls-verify": skipTLSVerify,
  };
  const spec = { interactive: false, ...(exec.provideClusterInfo ? { cluster } : {}) };
  const value = JSON.stringify({ apiVersion: exec.apiVersion ?? "client.authentication.k8s.io/v1", kind: "ExecCredential", spec });
  exec.env = [...(exec.env ?? []), { name, value }];
}
