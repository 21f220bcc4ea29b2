/** What was seen of a gate's two runs. Times are milliseconds since the gate began. */
import type { Session } from "./variables.ts";

export const RUNS = ["experiment", "control"] as const;
export type RunName = (typeof RUNS)[number];

export interface GateRecord {
  /** What the document tells the two runs apart by. */
  readonly declared: Readonly<Record<RunName, Session>>;
  readonly declaredWorkers: number;
  readonly exchangeLocation: string;
  /** Null: it was not begun, and `stopped` says why. */
  readonly experiment: RunRecord | null;
  readonly control: RunRecord | null;
  /** Why nothing more was done: a sentence; null when both runs were done. */
  readonly stopped: string | null;
  readonly baseline: BaselineRecord | null;
  readonly exception: ExceptionRecord | null;
}

/** A run without a kill: what the queries give, and how long they take. */
export interface BaselineRecord {
  readonly statements: readonly {
    readonly name: string;
    readonly rows: number;
    readonly tookMs: number;
    readonly problem: string | null;
  }[];
}

export interface ExceptionRecord {
  readonly by: string;
  readonly why: string;
  readonly followUps: readonly string[];
}

/** Everything that may make a run another one: what differs here between the two is a variable. */
export interface Conditions {
  /** Of the coordinator: another process may be configured otherwise. */
  readonly bootId: string;
  readonly version: string;
  readonly environment: string;
  readonly user: string;
  /** How many workers were announced as active when the run began. */
  readonly workers: number;
  readonly statements: readonly string[];
  /** As the engine took them, not as they were sent; null: the engine did not say. */
  readonly session: Session | null;
}

export interface RunRecord {
  readonly run: RunName;
  readonly conditions: Conditions;
  readonly nodes: NodesRecord;
  readonly statements: readonly StatementRecord[];
  /** The looks at the engine's nodes and tasks before the kill, oldest first; the last one counts. At most `MOST_LOOKS`. */
  readonly looks: readonly TasksLook[];
  /** So long was waited for two workers with running tasks. */
  readonly openBoundMs: number;
  /** Null: nobody was killed. */
  readonly kill: KillRecord | null;
  readonly endBoundMs: number;
  readonly exchange: ExchangeRecord;
  /** Null: it was not looked for. */
  readonly back: BackRecord | null;
  readonly startedAt: number;
  readonly endedAt: number;
}
export const MOST_LOOKS = 100;

export interface NodesRecord {
  readonly at: number;
  /** Workers that the engine names as active; a coordinator is none. */
  readonly announced: readonly { readonly nodeId: string; readonly uri: string }[];
  /** Those that say so of themselves; null: nobody could tell. */
  readonly ready: readonly string[] | null;
}

export interface TasksLook {
  /** When the engine had answered. */
  readonly at: number;
  /** Workers that the engine named as active then. */
  readonly announced: readonly string[];
  readonly running: readonly { readonly nodeId: string; readonly queryId: string; readonly tasks: number }[];
}

export interface StatementRecord {
  /** `query 1`, … */
  readonly name: string;
  readonly queryId: string;
  readonly retryPolicy: string | null;
  readonly startedAt: number;
  readonly outcome: Outcome;
}

export type Outcome =
  | {
      readonly kind: "finished";
      readonly at: number;
      readonly rows: number;
      /** In what the rows are not as expected; null: they are. */
      readonly difference: string | null;
    }
  | {
      readonly kind: "failed";
      readonly at: number;
      readonly error: { readonly name: string; readonly code: number; readonly message: string };
    }
  /** The coordinator did not answer for it any more. */
  | { readonly kind: "lost"; readonly at: number; readonly message: string }
  /** Given up after the bound, and cancelled. */
  | { readonly kind: "hung"; readonly at: number; readonly state: string; readonly tasks: string };

export interface KillRecord {
  readonly worker: { readonly nodeId: string; readonly uri: string };
  readonly how: string;
  /** Just before it was done. */
  readonly at: number;
  /** Null: it could not be done, and `error` says why. */
  readonly what: string | null;
  readonly error: string | null;
  /** When its process was seen to be gone; null: it was not. */
  readonly goneAt: number | null;
  /** When the engine no longer named it among its active nodes, or named it again after it had not; null: until the end it did. */
  readonly unannouncedAt: number | null;
}

export interface ExchangeRecord {
  readonly location: string;
  readonly listings: number;
  /** Of all queries of the run, at the fullest listing. */
  readonly entries: number;
  readonly bytes: number;
  readonly firstAt: number | null;
  /** Some of the paths. */
  readonly sample: readonly string[];
  /** Of the last listing that failed; null: none did. */
  readonly error: string | null;
  /** A minute or less after the end of the queries. */
  readonly left: number | null;
}

export interface BackRecord {
  readonly boundMs: number;
  /** Null: nobody came, or ran nothing. */
  readonly task: { readonly taskId: string; readonly nodeId: string; readonly at: number } | null;
  readonly announcedAt: number | null;
  /** What was seen last. */
  readonly seen: string;
}
