/** Reads what containers wrote, as `kubectl logs` wants it. */
import { open, stat } from "node:fs/promises";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { isNotFound, type KubeApi } from "../../kube/api.ts";
import { PODS } from "../../kube/resources.ts";
import type { ContainerStatus, PodView } from "../controllers/views.ts";
import type { PodLogOptions, PodLogs } from "../http/pod-logs.ts";
import type { PodIdentity } from "./pod-runtime.ts";

const FOLLOW_MS = 200;
const CHUNK_BYTES = 64 * 1024;

export interface LogFiles {
  logPath(pod: PodIdentity, container: string, restartCount: number): string;
}

export function podLogs(api: KubeApi, files: LogFiles, clock: Clock): PodLogs {
  async function find(namespace: string, name: string): Promise<PodView | undefined> {
    try {
      return (await api.get({ type: PODS, namespace, name })) as PodView;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  return {
    async *read(
      namespace: string,
      podName: string,
      container: string,
      options: PodLogOptions,
      signal: AbortSignal,
    ): AsyncIterable<Uint8Array> {
      const pod = await find(namespace, podName);
      const status = pod === undefined ? undefined : statusOf(pod, container);
      const restartCount = (status?.restartCount ?? 0) - (options.previous ? 1 : 0);
      if (pod === undefined || status?.containerID === undefined || restartCount < 0) {
        throw new RelevoError("container_log_missing", `There is no output of container ${container} in pod ${podName} yet.`, {
          found: status?.state ?? "no such container",
        });
      }
      const path = files.logPath({ namespace, name: podName, uid: pod.metadata.uid }, container, restartCount);
      let offset = options.tailLines === undefined ? 0 : await offsetOfLastLines(path, options.tailLines);
      if (options.tailLines === undefined && (await sizeOf(`${path}.1`)) > 0) yield* readFrom(`${path}.1`, 0);
      for (;;) {
        // Whether it still runs is asked before the reading, so that the last lines are not missed.
        const isOver =
          !options.follow || options.previous || !(await isRunning(pod.metadata.uid, namespace, podName, container, restartCount));
        const size = await sizeOf(path);
        if (size < offset) offset = 0; // it was rotated
        for await (const chunk of readFrom(path, offset)) {
          offset += chunk.length;
          yield chunk;
        }
        if (isOver || signal.aborted) return;
        await clock.sleep(FOLLOW_MS, signal).catch(() => undefined);
      }
    },
  };

  async function isRunning(uid: string, namespace: string, podName: string, container: string, restartCount: number): Promise<boolean> {
    const pod = await find(namespace, podName);
    const status = pod?.metadata.uid === uid ? statusOf(pod, container) : undefined;
    return status?.restartCount === restartCount && status.state.terminated === undefined;
  }
}

function statusOf(pod: PodView, container: string): ContainerStatus | undefined {
  return [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])].find(
    (status) => status.name === container,
  );
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function* readFrom(path: string, offset: number): AsyncGenerator<Uint8Array> {
  if ((await sizeOf(path)) <= offset) return;
  const file = await open(path, "r");
  try {
    for (let at = offset; ; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Where the last so many lines begin; read backwards, chunk by chunk. */
async function offsetOfLastLines(path: string, lines: number): Promise<number> {
  const size = await sizeOf(path);
  if (lines <= 0 || size === 0) return size;
  const file = await open(path, "r");
  try {
    let seen = 0;
    for (let end = size; end > 0; ) {
      const begin = Math.max(0, end - CHUNK_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(end - begin), 0, end - begin, begin);
      for (let index = bytesRead - 1; index >= 0; index--) {
        const isLast = begin + index === size - 1; // a newline at the very end closes the last line
        if (buffer[index] === 0x0a && !isLast && ++seen === lines) return begin + index + 1;
      }
      end = begin;
    }
    return 0;
  } finally {
    await file.close();
  }
}
