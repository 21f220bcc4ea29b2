/**
 * Whether a coordinator has memory for fault tolerance (T16): the heap holds the queries' memory, the headroom and the descriptors of tasks; and, apart from it, the
 * container's limit holds the heap and what the JVM needs outside it.
 */
import { parseQuantity } from "../../../kernel/units.ts";
import type { RetryPolicy } from "../../../model/trino.ts";
import { fine, found, inMiB, type Judgement, parseSize, type PodPlan, settingOf } from "./facts.ts";

const CONFIG = "config.properties";
const DESCRIPTORS = "fault-tolerant-execution-task-descriptor-storage-max-memory";
/** Trino's own shares of the heap where nothing is said. */
const QUERY_SHARE = 0.3;
const HEADROOM_SHARE = 0.3;
const DESCRIPTOR_SHARE = 0.15;
/** The JVM's own default. */
const CODE_CACHE = 240 * 2 ** 20;
const METASPACE = 256 * 2 ** 20;
/** Buffers of the network and the collector's own tables, as a share of the heap. */
const OUTSIDE_SHARE = 0.1;

/** Undefined: it is not said, or by a share of a limit that is not there. */
export function heapOf({ jvm, spec }: Pick<PodPlan, "jvm" | "spec">): number | undefined {
  const fixed = jvm.findLast((option) => option.startsWith("-Xmx"));
  if (fixed !== undefined) return parseSize(fixed.slice(4));
  const share = jvm.findLast((option) => option.startsWith("-XX:MaxRAMPercentage="))?.split("=")[1];
  const limit = limitOf(spec);
  return share === undefined || limit === undefined ? undefined : (Number(share) / 100) * limit;
}

/** Of the first container, in which the server runs. */
function limitOf(spec: PodPlan["spec"]): number | undefined {
  const limit = spec.containers[0]?.resources?.limits?.["memory"];
  return limit === undefined ? undefined : parseQuantity(limit);
}

export function judgeHeap(plan: PodPlan, retryPolicy: RetryPolicy): Judgement {
  const heap = heapOf(plan);
  if (heap === undefined) return found("held", "how large its heap is was not said in jvm.config", "set -Xmx in jvm.config");
  const sizeOf = (name: string, share: number): number => parseSize(settingOf(plan, CONFIG, name) ?? "") ?? heap * share;
  const query = sizeOf("query.max-memory-per-node", QUERY_SHARE);
  const headroom = sizeOf("memory.heap-headroom-per-node", HEADROOM_SHARE);
  const descriptors = retryPolicy === "TASK" ? sizeOf(DESCRIPTORS, DESCRIPTOR_SHARE) : 0;
  const parts = [
    `queries ${inMiB(query)}`,
    `headroom ${inMiB(headroom)}`,
    ...(descriptors === 0 ? [] : [`task descriptors ${inMiB(descriptors)}`]),
  ];
  const sum = query + headroom + descriptors;
  const arithmetic = `${parts.join(" + ")} = ${inMiB(sum)}`;
  if (sum <= heap) return fine(`${arithmetic} ≤ heap ${inMiB(heap)}`);
  return found("refused", `${arithmetic} > heap ${inMiB(heap)}`, `raise -Xmx to ${inMiB(sum)}, or lower query.max-memory-per-node`);
}

export function judgeContainer(plan: PodPlan): Judgement {
  const heap = heapOf(plan);
  const limit = limitOf(plan.spec);
  if (heap === undefined) return found("held", "how large its heap is was not said in jvm.config", "set -Xmx in jvm.config");
  if (limit === undefined)
    return found("refused", "its container has no limit of memory", "set resources.limits.memory, equal to the request");
  const said = plan.jvm.findLast((option) => option.startsWith("-XX:ReservedCodeCacheSize="))?.split("=")[1];
  const code = parseSize(said ?? "") ?? CODE_CACHE;
  const outside = heap * OUTSIDE_SHARE;
  const sum = heap + code + METASPACE + outside;
  const arithmetic = `heap ${inMiB(heap)} + code cache ${inMiB(code)} + metaspace ${inMiB(METASPACE)} + buffers and collector ${inMiB(outside)} = ${inMiB(sum)}`;
  if (sum <= limit) return fine(`${arithmetic} ≤ limit ${inMiB(limit)}`);
  const todo = `raise the limit to ${inMiB(sum)}, or lower -Xmx`;
  const state = heap + code > limit ? "refused" : "warning";
  return found(state, `${arithmetic} > limit ${inMiB(limit)}: the kernel ends it before its heap is full`, todo);
}
