/**
 * A site with a real Prometheus behind a real HAProxy, which lets in who has the token and answers 503 itself while there is no Prometheus. What is scraped is what
 * the test says. All of it on free ports of loopback; it ends with the test's process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { systemClock } from "../../src/kernel/system.ts";
import { freePort, listen } from "../ports.ts";

const START_MS = 30_000;
/** Debian keeps HAProxy where not everybody looks. */
const ENV = { ...process.env, PATH: [process.env["PATH"] ?? "", "/usr/sbin"].join(delimiter) };

export class MetricSite {
  /** What is scraped, each half second. */
  metrics = "";
  readonly token: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "relevo-metric-site-"));
  readonly #target: Server;
  #ports = { prometheus: 0, proxy: 0 };
  #prometheus: ChildProcess | undefined;
  #proxy: ChildProcess | undefined;

  private constructor(token: string) {
    this.token = token;
    this.#target = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
      response.end(this.metrics);
    });
  }

  static async start(token: string): Promise<MetricSite> {
    const site = new MetricSite(token);
    const target = await listen(site.#target);
    const scrape = `scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [{ targets: ["127.0.0.1:${target}"] }]`;
    writeFileSync(join(site.#folder, "prometheus.yml"), `scrape_configs: [{ job_name: jobs, ${scrape} }]\n`);
    site.#ports = { prometheus: await freePort(), proxy: await freePort() };
    writeFileSync(join(site.#folder, "haproxy.cfg"), proxyConfig(site.#ports, token));
    site.#proxy = child("haproxy", "-db", "-q", "-f", join(site.#folder, "haproxy.cfg"));
    await site.launch();
    return site;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ports.proxy}`;
  }

  /** Prometheus; also again after it was killed, with what it had. */
  async launch(): Promise<void> {
    const files = ["--config.file", join(this.#folder, "prometheus.yml"), "--storage.tsdb.path", join(this.#folder, "data")];
    this.#prometheus = child("prometheus", ...files, "--web.listen-address", `127.0.0.1:${this.#ports.prometheus}`, "--log.level", "error");
    for (const until = systemClock.monotonic() + START_MS; (await this.status()) !== 200; await systemClock.sleep(100))
      if (systemClock.monotonic() > until) throw new Error("Prometheus is not ready behind its proxy");
  }

  /** What the proxy answers to who has the token; undefined: nothing. */
  async status(): Promise<number | undefined> {
    const headers = { authorization: `Bearer ${this.token}` };
    return fetch(`${this.url}/api/v1/query?query=1`, { headers }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => undefined,
    );
  }

  /** Prometheus alone: its proxy stays. */
  kill(): Promise<void> {
    return end(this.#prometheus);
  }

  async stop(): Promise<void> {
    await end(this.#prometheus);
    await end(this.#proxy);
    this.#target.closeAllConnections();
    this.#target.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function proxyConfig({ prometheus, proxy }: { readonly prometheus: number; readonly proxy: number }, token: string): string {
  return `global
  nbthread 1
defaults
  mode http
  timeout connect 1s
  timeout client 15s
  timeout server 15s
frontend metrics
  bind 127.0.0.1:${proxy}
  http-request deny deny_status 401 unless { req.hdr(authorization) -m str "Bearer ${token}" }
  default_backend prometheus
backend prometheus
  server one 127.0.0.1:${prometheus}
`;
}

/** The kernel ends it when this process dies, however it dies. */
function child(command: string, ...args: readonly string[]): ChildProcess {
  return spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", command, ...args], { stdio: "ignore", env: ENV });
}

async function end(process: ChildProcess | undefined): Promise<void> {
  if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
  const ended = once(process, "exit");
  process.kill("SIGKILL");
  await ended;
}
