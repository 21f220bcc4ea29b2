/** Where the output of containers comes from: the nodes provide it, the API server passes it on. */

export interface PodLogOptions {
  /** Go on until the container ends or the signal aborts. */
  readonly follow: boolean;
  /** Only the last so many lines of what there is; absent is all that is kept. */
  readonly tailLines: number | undefined;
  /** The output of the container's previous run. */
  readonly previous: boolean;
}

export interface PodLogs {
  /** Throws a RelevoError when there is no such output (yet). */
  read(namespace: string, pod: string, container: string, options: PodLogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
}
