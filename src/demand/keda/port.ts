/** What the scaler asks of whoever decides sizes. */
export interface DecidedSizes {
  /**
   * How many instances the pool (`namespace/name`) is to have, as it was decided last: it holds while the demand cannot be believed (K11). Undefined: there is no
   * such Pool with `scale`. Null: there is, and nothing is known of it yet. Rejects when nobody can say.
   */
  sizeOf(pool: string): Promise<number | null | undefined>;
  /** Told when a pool may have another size. Returns how to stop. */
  onChange(listener: (pool: string) => void): () => void;
}
