/**
 * By which errors a query fails when a worker under it is lost: only such a failure of the control counts (T11). Names and codes as in
 * `io.trino.spi.StandardErrorCode` of Trino 483.
 */
export const WORKER_LOSS: Readonly<Record<number, { readonly name: string; readonly meaning: string }>> = {
  65537: {
    name: "TOO_MANY_REQUESTS_FAILED",
    meaning: "the coordinator's calls to the worker failed for longer than query.remote-task.max-error-duration",
  },
  65539: { name: "PAGE_TRANSPORT_ERROR", meaning: "a worker could not get pages from another" },
  65540: { name: "PAGE_TRANSPORT_TIMEOUT", meaning: "pages could not be got from a worker for longer than exchange.max-error-duration" },
  65541: { name: "NO_NODES_AVAILABLE", meaning: "no node is left that may run a task" },
  65542: { name: "REMOTE_TASK_ERROR", meaning: "a call to a task on a worker failed" },
  65544: { name: "REMOTE_TASK_MISMATCH", meaning: "another process answers at the worker's address" },
  65558: { name: "REMOTE_HOST_GONE", meaning: "the failure detector has given the worker up" },
};

export function isWorkerLoss({ code, name }: { readonly code: number; readonly name: string }): boolean {
  return WORKER_LOSS[code]?.name === name;
}
