/** Who sends notices, and when it was last heard. */
import type { Instant } from "../kernel/clock.ts";

/** As `relevo get sources` shows it. */
export interface SenderState {
  readonly source: string;
  /** A queue's URL, a node's name. */
  readonly from: string;
  readonly lastHeardAt: Instant | null;
  /** How often it said that it reports. */
  readonly everyMs: number;
  /** Not heard for three times as long. */
  readonly isSilent: boolean;
  /** What it said of itself; null: all is well. */
  readonly trouble: string | null;
}
