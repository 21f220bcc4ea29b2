/** The demo on a terminal: what happens and why, as it happens, and one line of counts that is redrawn. On anything else: plain lines. */
import type { Clock } from "../../kernel/clock.ts";
import type { JournalView } from "../../server/views.ts";
import type { Palette } from "../output.ts";
import type { LoadSnapshot } from "./load/client.ts";

export interface NarratorOptions {
  readonly write: (text: string) => void;
  /** How wide the terminal is now, in characters; undefined where there is none: then nothing is redrawn, and nothing wrapped. */
  readonly columns: () => number | undefined;
  readonly palette: Palette;
  readonly clock: Clock;
}

/** Of the column of seconds, with its blank. */
const MARGIN = 7;
/** Of the longest phase. */
const WORD = 10;
/** A narrower terminal is written to as if it were this wide. */
const NARROWEST = 40;

export class Narrator {
  readonly #options: NarratorOptions;
  readonly #startedAt: number;
  #counts = "";

  constructor(options: NarratorOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
  }

  title(text: string): void {
    this.end();
    this.#line(text, this.#options.palette.bold);
  }

  tell(text: string): void {
    this.#line(`  ${text}`);
  }

  journal(entry: JournalView): void {
    const { dim, yellow, green } = this.#options.palette;
    const why = entry.reason === null ? "" : `  ${entry.reason.sentence}`;
    switch (entry.kind) {
      case "evidence":
        return this.#event("evidence", `${entry.subject}  ${entry.code}${why}`, yellow);
      case "phase":
        // A process that began: the phases say the same a moment later.
        if (entry.code === "new_incarnation") return;
        return this.#event(entry.code, `${entry.subject}${why}`, entry.code === "serving" ? green : undefined);
      case "step":
        if (entry.code.endsWith(" begun") && !entry.code.startsWith("protect_pod"))
          this.#event("step", `${entry.code.replace("/1 begun", "")}${why}`, dim);
        return;
      default:
        return;
    }
  }

  counts(act: string, { sent, outcomes, inFlight }: Pick<LoadSnapshot, "sent" | "outcomes" | "inFlight">): void {
    const columns = this.#options.columns();
    if (columns === undefined) return;
    const text = `  ${act}: ${sent} sent, ${outcomes.completed} completed, ${inFlight} in flight, ${outcomes.rejected} rejected, ${outcomes.cut} cut, ${outcomes.lost} lost`;
    // What reaches the next line could not be taken back.
    this.#counts = this.#options.palette.cyan(text.slice(0, columns - 1));
    this.#options.write(`\r\u001B[K${this.#counts}`);
  }

  /** The counts are those of something that is over. */
  end(): void {
    this.#clear();
    this.#counts = "";
  }

  #event(word: string, text: string, color?: (text: string) => string): void {
    this.#line(`  ${word.padEnd(WORD)}  ${text}`, color, WORD + 4);
  }

  #line(text: string, color: (text: string) => string = (plain) => plain, indent = 2): void {
    this.#clear();
    const seconds = ((this.#options.clock.monotonic() - this.#startedAt) / 1000).toFixed(1).padStart(MARGIN - 1);
    const columns = this.#options.columns();
    const [first = "", ...rest] = columns === undefined ? [text] : wrap(text, Math.max(NARROWEST, columns) - MARGIN - 1, indent);
    const lines = [`${this.#options.palette.dim(seconds)} ${color(first)}`, ...rest.map((line) => `${" ".repeat(MARGIN)}${color(line)}`)];
    this.#options.write(`${lines.join("\n")}\n${this.#counts}`);
  }

  #clear(): void {
    if (this.#counts !== "") this.#options.write("\r\u001B[K");
  }
}

/** At blanks; what follows the first line is indented. */
function wrap(text: string, width: number, indent: number): readonly string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const blank = rest.lastIndexOf(" ", width);
    if (blank <= indent) break; // one word that is longer than a line
    lines.push(rest.slice(0, blank).trimEnd());
    rest = " ".repeat(indent) + rest.slice(blank).trimStart();
  }
  return [...lines, rest];
}
