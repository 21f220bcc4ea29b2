/** The client that is not ours: Trino's JDBC driver in a process of its own, whose answers are counted with those of the other clients. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ActName, TrinoClients } from "./clients.ts";
import { ROOT, type TrinoSite } from "./site.ts";

const PROGRAM = join(ROOT, "tools/peers/TrinoJdbcClient.java");
const PAUSE_MS = 1_000;
const FLAGS = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

export interface JdbcClient {
  /** Settles when it has ended, with what it had begun. */
  stop(): Promise<{ readonly sent: number; readonly right: number }>;
}

export function startJdbc(site: Pick<TrinoSite, "server" | "stack" | "undo">, clients: TrinoClients, act: ActName): JdbcClient {
  const { java, jdbc } = site.server;
  const url = `jdbc:trino://${new URL(site.stack.gatewayUrl).host}`;
  const child = spawn(join(java, "bin/java"), [...FLAGS, "-cp", jdbc, PROGRAM, url, String(PAUSE_MS)], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => undefined); // it has ended: its exit says so
  const gone = once(child, "close");
  gone.catch(() => undefined); // it did not begin: then it counts nothing, which is seen
  site.undo.push(() => void child.kill("SIGKILL"));
  const own = { sent: 0, right: 0 };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const [how = "", ...what] = line.split(" ");
    clients.told(act, how, `JDBC, ${what.join(" ")}`);
    if (how === "right" || how === "wrong" || how === "failed") own.sent += 1;
    if (how === "right") own.right += 1;
  });
  return {
    async stop() {
      child.stdin.end();
      await gone.catch(() => undefined); // as above
      return own;
    },
  };
}
