/** The demo on a terminal: what happens and why, as it happens, and one line of counts that is redrawn. On anything else: plain lines. */
import picocolors from "picocolors";
import type { Clock } from "../../kernel/clock.ts";
import type { JournalView } from "../../server/views.ts";
import type { LoadSnapshot } from "./load/client.ts";

export interface NarratorOptions {
  readonly write: (text: string) => void;
  readonly isTerminal: boolean;
  readonly clock: Clock;
}

export class Narrator {
  readonly #options: NarratorOptions;
  readonly #startedAt: number;
  readonly #colors: ReturnType<typeof picocolors.createColors>;
  #counts = "";

  constructor(options: NarratorOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
    this.#colors = picocolors.createColors(options.isTerminal);
  }

  title(text: string): void {
    this.#line(this.#colors.bold(text));
  }

  tell(text: string): void {
    this.#line(`  ${text}`);
  }

  journal(entry: JournalView): void {
    const { dim, yellow, green } = this.#colors;
    const why = entry.reason === null ? "" : dim(`  ${entry.reason.sentence}`);
    switch (entry.kind) {
      case "evidence":
        return this.tell(yellow(`evidence  ${entry.subject}  ${entry.code}`) + why);
      case "phase":
        return this.tell(`${entry.code === "serving" ? green("serving ") : entry.code.padEnd(8)}  ${entry.subject}${why}`);
      case "step":
        if (entry.code.endsWith(" begun") && !entry.code.startsWith("protect_pod"))
          this.tell(dim(`step      ${entry.code.replace("/1 begun", "")}`) + why);
        return;
      default:
        return;
    }
  }

  counts(act: string, { sent, outcomes, inFlight }: LoadSnapshot): void {
    if (!this.#options.isTerminal) return;
    this.#counts = `  ${act}: ${sent} sent, ${outcomes.completed} completed, ${inFlight} in flight, ${outcomes.rejected} rejected, ${outcomes.cut} cut, ${outcomes.lost} lost`;
    this.#options.write(`\r\u001B[K${this.#colors.cyan(this.#counts)}`);
  }

  table(text: string): void {
    this.#clear();
    this.#options.write(`${text}\n`);
  }

  #line(text: string): void {
    this.#clear();
    const seconds = ((this.#options.clock.monotonic() - this.#startedAt) / 1000).toFixed(1).padStart(6);
    this.#options.write(`${this.#colors.dim(seconds)} ${text}\n`);
    if (this.#counts !== "") this.#options.write(this.#colors.cyan(this.#counts));
  }

  #clear(): void {
    if (this.#counts !== "") this.#options.write("\r\u001B[K");
  }
}
