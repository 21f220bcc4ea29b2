/** The writer as a child process, and what a store must hold of its acknowledged commits. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Store } from "../../src/store/port.ts";

const PROGRAM = fileURLToPath(new URL("./store-writer.ts", import.meta.url));

export interface Acknowledged {
  /** `lane-number`. */
  readonly commit: string;
  /** Size of the write-ahead log when it was acknowledged. */
  readonly walBytes: number;
}

export class WriterProcess {
  readonly acknowledged: Acknowledged[] = [];
  readonly #child: ChildProcess;
  #rest = "";
  #waiting: (() => void) | undefined;

  constructor(path: string, pool: string, lanes: number, most = 1_000_000) {
    this.#child = spawn(process.execPath, [PROGRAM, path, pool, String(lanes), String(most)], { stdio: ["ignore", "pipe", "inherit"] });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#child.on("exit", () => this.#waiting?.());
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Settles when so many commits were acknowledged; rejects when the process ends before. */
  async until(count: number): Promise<void> {
    while (this.acknowledged.length < count) {
      if (this.#child.exitCode !== null) throw new Error(`the writer ended with ${this.#child.exitCode}`);
      await new Promise<void>((resolve) => (this.#waiting = resolve));
    }
  }

  /** SIGKILL; settles when it is dead and all that it printed was read. */
  async kill(): Promise<void> {
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const [commit = "", walBytes] = line.split(" ");
      this.acknowledged.push({ commit, walBytes: Number(walBytes) });
    }
    this.#waiting?.();
  }
}

/** What is missing of the acknowledged commits, and what is there by half: both must be empty. Up to 10,000 steps. */
export async function judge(
  store: Store,
  pool: string,
  acknowledged: readonly Acknowledged[],
): Promise<{ lost: readonly string[]; halfWritten: readonly string[] }> {
  const steps = new Map((await store.listSteps(pool, 10_000)).map((step) => [step.id, step.state]));
  const lost = acknowledged.map(({ commit }) => commit).filter((commit) => !steps.has(`s-${commit}`));
  const halfWritten = [...steps.keys()].filter((id) => {
    const [kind, lane, number] = id.split("-");
    const hasTwin = steps.has(`${kind === "s" ? "t" : "s"}-${lane}-${number}`);
    const isFormerDone = number === "0" || steps.get(`s-${lane}-${Number(number) - 1}`) === "done";
    return !hasTwin || !isFormerDone;
  });
  return { lost, halfWritten };
}
