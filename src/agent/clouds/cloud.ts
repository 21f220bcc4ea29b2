/** What a cloud's metadata is to the agent: who the machine is, and paths to look at again and again. */
import type { Look } from "../../notices/standing.ts";
import type { MachineIdentity } from "../../notices/agent-report.ts";

export type CloudName = "aws" | "gcp" | "azure";

export interface Cloud {
  readonly name: CloudName;
  /** The source of its notices. */
  readonly source: string;
  /** Rejects when this is not the cloud, or its metadata is away. */
  identify(signal: AbortSignal): Promise<MachineIdentity>;
  readonly watches: readonly Watch[];
}

export interface Watch {
  /** One look at each of its paths; one that could not be read is told as failed. Rejects only when it was stopped. */
  look(signal: AbortSignal): Promise<readonly Look[]>;
  /** Between two looks; above 0, also where the look itself waits for a change. */
  readonly everyMs: number;
  /** In how many looks one after the other a thing must be missing to be gone. */
  readonly goneAfter: number;
}

/** Of an answer of metadata. */
export const MAX_METADATA_BYTES = 256 * 1024;
export const METADATA_TIMEOUT_MS = 2_000;

/** One sentence of at most 160 characters, without what the other side sent: it is told to the controller. */
export function sentenceOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 160);
}
