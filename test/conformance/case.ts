/** A case: requests one after the other, and of each answer what a client decides by. */

export interface CallStep {
  /** `PUT /api/v1/namespaces/$ns/configmaps/a?x=y`. `$ns` is a namespace of the case's own; `$name.rv`, `$name.uid` and `$name.continue` are of a kept answer. */
  readonly call: string;
  /** The same names are filled into its texts. A text is sent as it is. */
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
  /** The answer is remembered under this name. */
  readonly keep?: string;
  /** Paths of the answer that are compared besides. */
  readonly pick?: readonly string[];
}

export interface WatchStep {
  readonly watch: string;
  readonly accept?: string;
  /** It is closed after so many events, or when nothing comes any more. */
  readonly events: number;
  readonly during?: readonly CallStep[];
  readonly pick?: readonly string[];
}

export type Step = CallStep | WatchStep;

export interface Case {
  /** Unique. */
  readonly name: string;
  readonly steps: readonly Step[];
}

/** What an answer comes to: plain JSON, the same for the same behaviour. */
export type Told = Readonly<Record<string, unknown>>;
export type Recording = Readonly<Record<string, readonly Told[]>>;
