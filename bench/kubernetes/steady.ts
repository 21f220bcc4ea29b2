/** A controller over an inventory in which 100 pods change each second: what it takes, and how long it takes to start. */
import { systemClock } from "../../src/kernel/system.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { PODS } from "../../src/kube/resources.ts";
import { quantileBetween, usageOf } from "./process-usage.ts";

const CHANGES_PER_S = 100;
const FOR_S = 30;
const SETTLE_MS = 10_000;
const READY_WITHIN_MS = 180_000;

export interface Steady {
  readonly rssMiB: number;
  readonly idleCpuShare: number;
  /** Of a core, while so many changes come in a second. */
  readonly cpuShare: number;
  readonly changesPerS: number;
  /** The bound of a bucket of `relevo_pass_duration_seconds`. */
  readonly passP99Ms: number | null;
  /** From its end to being in step with the cluster again. */
  readonly startS: number;
}

export async function measureSteady(options: {
  readonly api: KubeApi;
  readonly pods: readonly string[];
  readonly controllerUrl: string;
  readonly pid: () => number;
  /** Settles when the process listens again. */
  readonly restart: () => Promise<void>;
}): Promise<Steady> {
  const { controllerUrl, pid } = options;
  const startedAt = systemClock.monotonic();
  await options.restart();
  await untilReady(controllerUrl);
  const startS = (systemClock.monotonic() - startedAt) / 1_000;
  await systemClock.sleep(SETTLE_MS);
  const idle = usageOf(pid());
  await systemClock.sleep(SETTLE_MS);
  const idleCpuShare = (usageOf(pid()).cpuS - idle.cpuS) / (SETTLE_MS / 1_000);
  const metrics = async () => (await fetch(`${controllerUrl}/metrics`)).text();
  const before = await metrics();
  const from = { usage: usageOf(pid()), at: systemClock.monotonic() };
  const changes = await change(options);
  const seconds = (systemClock.monotonic() - from.at) / 1_000;
  const after = usageOf(pid());
  const passS = quantileBetween(before, await metrics(), "relevo_pass_duration_seconds", 0.99);
  return {
    rssMiB: after.rssMiB,
    idleCpuShare: rounded(idleCpuShare),
    cpuShare: rounded((after.cpuS - from.usage.cpuS) / seconds),
    changesPerS: rounded(changes / seconds),
    passP99Ms: passS === null ? null : passS * 1_000,
    startS: rounded(startS),
  };
}

async function change({ api, pods }: { readonly api: KubeApi; readonly pods: readonly string[] }): Promise<number> {
  const total = CHANGES_PER_S * FOR_S;
  const startedAt = systemClock.monotonic();
  const running = new Set<Promise<unknown>>();
  for (let number = 0; number < total; number++) {
    const dueMs = (number * 1_000) / CHANGES_PER_S;
    const early = startedAt + dueMs - systemClock.monotonic();
    if (early > 5) await systemClock.sleep(early);
    const name = pods[(number * 7_919) % pods.length] ?? "";
    const patch = { metadata: { annotations: { changed: String(number) } } };
    const one: Promise<unknown> = api.patch({ type: PODS, namespace: "default", name }, patch).finally(() => running.delete(one));
    running.add(one);
    if (running.size >= CHANGES_PER_S) await Promise.race(running);
  }
  await Promise.all(running);
  return total;
}

async function untilReady(url: string): Promise<void> {
  const end = systemClock.monotonic() + READY_WITHIN_MS;
  while (systemClock.monotonic() < end) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    const body = (await answer?.json().catch(() => undefined)) as
      | { readonly checks?: readonly { readonly name: string; readonly ok: boolean }[] }
      | undefined;
    if (body?.checks?.some(({ name, ok }) => name === "cluster" && ok)) return;
    await systemClock.sleep(100);
  }
  throw new Error("the controller is not in step with the cluster in time");
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
