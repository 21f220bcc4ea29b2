/** What the cluster's process and a node's helper say to each other. */
export interface StartContainer {
  readonly kind: "start";
  readonly id: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly logPath: string;
  /** Beyond it the log is rotated, once. */
  readonly maxLogBytes: number;
  /** Of all its processes together; absent: none. */
  readonly memoryLimitBytes?: number;
}

export type ToHelper =
  | StartContainer
  | { readonly kind: "signal"; readonly id: string; readonly signal: "SIGTERM" | "SIGKILL" }
  | {
      readonly kind: "run";
      readonly request: number;
      readonly file: string;
      readonly args: readonly string[];
      readonly cwd: string;
      readonly env: Record<string, string>;
      readonly timeoutMs: number;
    }
  | { readonly kind: "ping"; readonly request: number };

export type FromHelper =
  | { readonly kind: "ready" }
  | { readonly kind: "started"; readonly id: string; readonly pid: number }
  | { readonly kind: "failed"; readonly id: string; readonly message: string }
  | {
      readonly kind: "exited";
      readonly id: string;
      readonly code: number | null;
      readonly signal: string | null;
      readonly isOutOfMemory: boolean;
    }
  /** Code -1: it did not run, or was ended because it took too long. */
  | { readonly kind: "ran"; readonly request: number; readonly code: number; readonly output: string }
  | { readonly kind: "pong"; readonly request: number };
