/**
 * One line to each controller. A URL may be given for each, or a name with several addresses (a headless Service), which is resolved again and again: an address
 * that comes gets a line, one that is gone for good loses it. They are alike: each is told all reports, and what each says is applied.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Timer } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";
import { isLoopback } from "../kernel/loopback.ts";
import type { ControllerLine } from "../model/membership.ts";
import { LIMITS } from "./limits.ts";
import { ControllerLink, type LinkOptions } from "./link.ts";

export type Resolve = (host: string) => Promise<readonly string[]>;

export interface LinksOptions extends Omit<LinkOptions, "controllerUrl" | "line" | "closed"> {
  readonly controllerUrls: readonly string[];
  readonly resolve?: Resolve | undefined;
  /** `source` is the same for all lines of one controller. */
  readonly line: (line: ControllerLine, source: string) => void;
  readonly closed: (source: string) => void;
}

interface Line {
  readonly link: ControllerLink;
  /** Times in a row that its address was not among those of its name. */
  missing: number;
}

export class ControllerLinks {
  readonly #options: LinksOptions;
  readonly #resolve: Resolve;
  /** By URL. */
  readonly #lines = new Map<string, Line>();
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: LinksOptions) {
    this.#options = options;
    this.#resolve = options.resolve ?? addressesOf;
  }

  start(): void {
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    for (const url of [...this.#lines.keys()]) this.#close(url);
  }

  reportSoon(): void {
    for (const { link } of this.#lines.values()) link.reportSoon();
  }

  /** Settles when each controller has it, or did not take it. */
  async sendReport(): Promise<void> {
    await Promise.all([...this.#lines.values()].map(({ link }) => link.sendReport()));
  }

  async #look(): Promise<void> {
    const { controllerUrls, clock } = this.#options;
    const named = controllerUrls.filter(isNamed);
    for (const url of controllerUrls) if (!isNamed(url)) this.#open(url);
    const found = await Promise.all(named.map((url) => this.#urlsBehind(url)));
    if (this.#isStopped) return;
    // Of a name that cannot be resolved just now every line stays.
    if (!found.includes(undefined)) this.#closeMissing(new Set([...controllerUrls, ...found.flatMap((urls) => urls ?? [])]));
    for (const url of found.flatMap((urls) => urls ?? [])) this.#open(url);
    if (named.length > 0) this.#timer = clock.after(LIMITS.resolveEveryMs, () => void this.#look());
  }

  async #urlsBehind(url: string): Promise<readonly string[] | undefined> {
    const { hostname } = new URL(url);
    try {
      const addresses = (await this.#resolve(hostname)).slice(0, LIMITS.controllers);
      return addresses.length === 0 ? undefined : addresses.map((address) => at(url, address));
    } catch (error) {
      this.#options.log.warn(
        { hostname, error: describeError(error) },
        "the controllers' name cannot be resolved: the lines that there are stay",
      );
      return undefined;
    }
  }

  #open(url: string): void {
    const line = this.#lines.get(url);
    if (line !== undefined) {
      line.missing = 0;
      return;
    }
    const { line: said, closed } = this.#options;
    const link = new ControllerLink({
      ...this.#options,
      controllerUrl: url,
      line: (text) => said(text, url),
      closed: () => closed(url),
    });
    this.#lines.set(url, { link, missing: 0 });
    link.start();
  }

  #closeMissing(there: ReadonlySet<string>): void {
    for (const [url, line] of this.#lines) {
      if (there.has(url)) continue;
      line.missing += 1;
      if (line.missing >= LIMITS.missingResolves) this.#close(url);
    }
  }

  #close(url: string): void {
    this.#lines.get(url)?.link.stop();
    this.#lines.delete(url);
  }
}

/** A certificate is for the name: with TLS there is one line. */
function isNamed(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && isIP(hostname.replace(/^\[|\]$/g, "")) === 0 && !isLoopback(hostname);
}

function at(url: string, address: string): string {
  const resolved = new URL(url);
  resolved.hostname = isIP(address) === 6 ? `[${address}]` : address;
  return resolved.href.replace(/\/$/, "");
}

async function addressesOf(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address).toSorted();
}
