/** A PostgreSQL of its own for a test: Debian's programs, a new cluster in a temporary folder, on a free port of loopback. It ends with the test's process. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "../ports.ts";

const DEBIAN = "/usr/lib/postgresql";
/** The user of tests; a superuser of the scratch cluster. */
const USER = "relevo";
const DATABASE = "postgres";
const START_MS = 30_000;

export interface PostgresClusterOptions {
  /** Settings of the server beside those of a test. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf before its own, which lets everybody in. */
  readonly access?: readonly string[];
  /** Files of the data folder, which the server's user alone may read. */
  readonly files?: Readonly<Record<string, string>>;
}

export class PostgresCluster {
  readonly port: number;
  readonly folder: string;
  readonly #programs: string;
  readonly #settings: Readonly<Record<string, string>>;
  #server: ChildProcess | undefined;
  readonly #endsWithUs = (): void => void this.#server?.kill("SIGQUIT");

  private constructor(port: number, folder: string, programs: string, settings: Readonly<Record<string, string>>) {
    this.port = port;
    this.folder = folder;
    this.#programs = programs;
    this.#settings = settings;
    process.once("exit", this.#endsWithUs);
  }

  static async start({ settings = {}, access = [], files = {} }: PostgresClusterOptions = {}): Promise<PostgresCluster> {
    const programs = programFolder();
    const folder = mkdtempSync(join(tmpdir(), "relevo-postgres-"));
    const identity = serverUser();
    if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
    const init = ["-D", join(folder, "data"), "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
    execFileSync(join(programs, "initdb"), init, { ...identity, cwd: folder, stdio: "pipe" });
    const data = join(folder, "data");
    const rules = join(data, "pg_hba.conf");
    writeFileSync(rules, `${access.join("\n")}\n${readFileSync(rules, "utf8")}`);
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(data, name), text, { mode: 0o600 });
      if (identity !== undefined) chownSync(join(data, name), identity.uid, identity.gid);
    }
    const cluster = new PostgresCluster(await freePort(), folder, programs, settings);
    await cluster.launch();
    return cluster;
  }

  /** Of one schema of the database, which is made when the store is opened. */
  url(schema = "relevo", more = ""): string {
    return `postgresql://${USER}@127.0.0.1:${this.port}/${DATABASE}?schema=${schema}${more}`;
  }

  /** Starts the server again after it was ended or killed; settles when it takes connections. */
  async launch(): Promise<void> {
    const settings = Object.entries({ ...SETTINGS, unix_socket_directories: this.folder, ...this.#settings });
    const options = settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    // The kernel ends it when this process dies, however it dies.
    const server = spawn(
      "/usr/bin/setpriv",
      ["--pdeathsig", "QUIT", join(this.#programs, "postgres"), "-D", join(this.folder, "data"), "-p", String(this.port), ...options],
      {
        ...serverUser(),
        cwd: this.folder,
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    this.#server = server;
    await untilReady(server);
  }

  /** `fast` tells its clients; `immediate` and `killed` do not even end what is open. Settles when it is gone. */
  async end(how: "fast" | "immediate" | "killed" = "immediate"): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, "exit");
    server.kill(how === "fast" ? "SIGINT" : how === "immediate" ? "SIGQUIT" : "SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    await this.end();
    process.removeListener("exit", this.#endsWithUs);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Nothing of a test must outlive a loss of power; what waits for a deadlock need not wait long. */
const SETTINGS = {
  listen_addresses: "127.0.0.1",
  fsync: "off",
  full_page_writes: "off",
  autovacuum: "off",
  deadlock_timeout: "50ms",
  max_connections: "60",
  shared_buffers: "16MB",
  max_wal_size: "128MB",
  jit: "off",
};

async function untilReady(server: ChildProcess): Promise<void> {
  let log = "";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-20_000);
    if (log.includes("ready to accept connections")) resolve();
  });
  server.once("error", reject);
  server.once("exit", (code) => reject(new Error(`postgres ended with ${code}: ${log}`)));
  const bound = AbortSignal.timeout(START_MS);
  bound.addEventListener("abort", () => reject(new Error(`postgres was not ready after ${START_MS} ms: ${log}`)), { once: true });
  await promise;
}

function programFolder(): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(DEBIAN, version, "bin")), ...(process.env["PATH"] ?? "").split(delimiter)];
  const found = folders.find((folder) => existsSync(join(folder, "initdb")));
  if (found === undefined) throw new Error("there is no initdb: install Debian's package postgresql");
  return found;
}

/** The server refuses to run as root: Debian's package brings a user for it. Undefined when we are somebody else already. */
function serverUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((each) => each.startsWith("postgres:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  if (uid === undefined || gid === undefined) throw new Error("there is no user postgres: install Debian's package postgresql");
  return { uid: Number(uid), gid: Number(gid) };
}
