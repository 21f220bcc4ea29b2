/** One step of the schema, applied in a transaction of its own together with its number. */
export interface Migration {
  /** From 1, without gaps. */
  readonly number: number;
  readonly statements: readonly string[];
}
