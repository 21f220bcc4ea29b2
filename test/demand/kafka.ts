/** One real Kafka broker, as a child of the test's process; its jars are fetched beforehand by `tools/peers/kafka.sh fetch`. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { integerBetween } from "../../src/kernel/random.ts";
import { systemClock, systemRandom } from "../../src/kernel/system.ts";

const TOOL = join(import.meta.dirname, "..", "..", "tools", "peers", "kafka.sh");
const READY_LIMIT_MS = 120_000;

export interface Kafka {
  /** Open to all. */
  readonly broker: string;
  /** SASL over TLS: `relevo`, `secret`. */
  readonly saslBroker: string;
  /** Of the broker's certificate. */
  readonly caFile: string;
  /** SIGKILL; its data stay. */
  crash(): Promise<void>;
  /** Settles when it answers. */
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export async function startKafka(): Promise<Kafka> {
  const jars = execFileSync(TOOL, ["path"], { encoding: "utf8" }).trim();
  if (!existsSync(join(jars, "complete")))
    throw new Error(`Kafka is not there: run ${TOOL} fetch (about 15 s, once; needs Maven and Java 17)`);
  const dir = await mkdtemp(join(tmpdir(), "relevo-kafka-"));
  const caFile = join(dir, "broker.crt");
  const key = join(dir, "broker.key");
  const subject = ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, "-keyout", key, "-out", caFile], {
    stdio: "ignore",
  });
  await writeFile(join(dir, "broker.pem"), (await readFile(key, "utf8")) + (await readFile(caFile, "utf8")));
  const port = await freePorts(3);
  let child: ChildProcess | undefined;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  const kafka: Kafka = {
    broker: `127.0.0.1:${port}`,
    saslBroker: `127.0.0.1:${port + 2}`,
    caFile,
    crash: () => end("SIGKILL"),
    start: async () => {
      const log = await open(join(dir, "log"), "a");
      child = spawn(TOOL, ["run", dir, String(port)], { stdio: ["ignore", log.fd, log.fd] });
      await log.close();
      await untilReady(child, [port, port + 2], join(dir, "log"));
    },
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    stop: async () => {
      await end("SIGKILL"); // nothing is kept
      await rm(dir, { recursive: true, force: true });
    },
  };
  try {
    await kafka.start();
  } catch (error) {
    await kafka.stop();
    throw error;
  }
  return kafka;
}

async function untilReady(child: ChildProcess, ports: readonly number[], log: string): Promise<void> {
  const startedAt = systemClock.monotonic();
  while (!(await Promise.all(ports.map(isOpen))).every(Boolean)) {
    if (child.exitCode !== null || systemClock.monotonic() - startedAt > READY_LIMIT_MS)
      throw new Error(`Kafka does not start:\n${(await readFile(log, "utf8")).slice(-2_000)}`);
    await systemClock.sleep(100);
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}

/** The first of `count` that follow each other. */
async function freePorts(count: number): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const first = integerBetween(systemRandom, 20_000, 30_000);
    if ((await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)))).every(Boolean)) return first;
  }
  throw new Error("no free ports");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
