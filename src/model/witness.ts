/** Who else said the same: a loss is one fact, recorded with the first word of it; the others are its witnesses. */
import type { Instant } from "../kernel/clock.ts";

export interface Witness {
  /** A source of notices, or `cluster`: the node, its NodeClaim. */
  readonly source: string;
  /** A reason of evidence, or `withdrawn`. */
  readonly reason: string;
  readonly notice: string | null;
  /** When it was received; null: it is seen now. */
  readonly at: Instant | null;
  readonly deadline: Instant | null;
}
