/** Ids come through this port and no other way. An id is `prefix-` and at least ten lower-case characters, valid in a DNS label. */
export interface Ids {
  next(prefix: string): string;
}
