/**
 * `relevo demo kubernetes`: a fleet on a control plane that we did not write, with Karpenter replacing its nodes; then the same without protection, which must
 * fall below what is desired.
 */
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Random } from "../../../kernel/random.ts";
import { POOLS } from "../../../kube/resources.ts";
import type { ControllerClient } from "../../client.ts";
import { watchDuplicates } from "../duplicates.ts";
import { LoadProcess } from "../load/client-process.ts";
import type { Mix } from "../load/mix.ts";
import type { ActResult } from "../load/tally.ts";
import type { Narrator } from "../narrator.ts";
import { deadline, drift, type KubernetesStage, unprotectedDrift, watchServing } from "./acts.ts";
import { foreignChanges, inventoriesPerPassMax, requestCounts } from "./audit.ts";
import { INSTANCES_ACCOUNT } from "./documents.ts";
import { type KubernetesReport, reportOf } from "./report.ts";
import { type KubernetesAddresses, type Site, startSite } from "./site.ts";

const DESIRED = 4;
const CALM_MS = 3_000;

/** Every kind of request, at a pace that leaves the machine to the control plane. */
const MIX: Mix = {
  perSecond: { order: 8, charge: 4, export: 0.5, live: 0.3, tx: 0.4 },
  exportSeconds: [2, 5],
  liveSeconds: [3, 8],
  txSeconds: [2, 6],
  stepMs: 400,
  http2Share: 0.3,
};

export interface KubernetesDemoOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
  readonly logLevel: string;
}

export interface PlayedKubernetes {
  readonly report: KubernetesReport;
  readonly addresses: KubernetesAddresses;
  stop(): Promise<void>;
}

/** Plays everything and leaves it running; `stop` ends it. */
export async function playKubernetes(options: KubernetesDemoOptions): Promise<PlayedKubernetes> {
  const { narrator } = options;
  const startedAt = options.clock.monotonic();
  narrator.title("starting: etcd, API server, controllers, scheduler, kwok, Karpenter");
  const site = await startSite({ ...options, nodePools: ["fleet", "control"], tell: (sentence) => narrator.tell(sentence) });
  const undo: (() => unknown)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) step();
    await site.stop();
  };
  try {
    return { report: await play(options, site, { startedAt, undo }), addresses: site.addresses, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function play(
  options: KubernetesDemoOptions,
  site: Site,
  { startedAt, undo }: { readonly startedAt: number; readonly undo: (() => unknown)[] },
): Promise<KubernetesReport> {
  const { clock, narrator, random, signal } = options;
  const tell = (sentence: string) => narrator.tell(sentence);
  const { world, client, kube, kubectl } = site;
  const duplicates = await watchDuplicates({ kube, clock, random });
  undo.push(() => duplicates.stop());
  const over = new AbortController();
  undo.push(() => over.abort());
  void narrate(client, narrator, clock, AbortSignal.any([signal, over.signal]));

  narrator.title(`the pool orders: ${DESIRED} instances, each on a machine that Karpenter makes for it`);
  await site.addPool({ name: "orders", mode: "Act", nodePool: "fleet", desired: DESIRED });
  const load = await LoadProcess.start({ ...site.load("orders"), mix: MIX });
  undo.push(() => load.kill());
  const stage: KubernetesStage = { world, kube, kubectl, clock, pool: "default/orders", nodePool: "fleet", desired: DESIRED, tell };
  await clock.sleep(CALM_MS, signal);
  const from = clock.now();

  narrator.title("act 1, drift: Karpenter wants to replace every node, and waits for us");
  const driftAct = await underLoad(load, "drift", async () => {
    const serving = watchServing(stage);
    const result = await drift(stage).finally(() => serving.stop());
    return { result, servingNeverBelow: await serving.stop() };
  });
  const driftEnd = clock.now();
  narrator.title("act 2, deadline: a NodeClaim is deleted, and Karpenter ends its pods at a time");
  const deadlineAct = await underLoad(load, "deadline", () => deadline(stage));
  await load.stop();
  const to = clock.now();

  narrator.title("control: the same drift with disruption.mode Off, on a pool and machines of its own");
  await site.addPool({ name: "orders-control", mode: "Off", nodePool: "control", desired: DESIRED });
  const controlStage: KubernetesStage = { ...stage, pool: "default/orders-control", nodePool: "control" };
  const controlLoad = await LoadProcess.start({ ...site.load("orders-control"), mix: MIX });
  undo.push(() => controlLoad.kill());
  const control = await underLoad(controlLoad, "control", async () => {
    const serving = watchServing(controlStage);
    await unprotectedDrift(controlStage).finally(() => serving.stop());
    return serving.stop();
  });
  await controlLoad.stop();
  await kube.delete({ type: POOLS, namespace: "default", name: "orders-control" });

  const entries = site.audit();
  const evidence = await world.evidence("default/orders");
  const own = {
    instances: new Set(
      [...(await world.instances("default/orders")), ...(await world.instances("default/orders-control"))].map(({ id }) => id),
    ),
    nodes: new Set(evidence.flatMap(({ node }) => (node === null ? [] : [node.name]))),
    accounts: new Set([`system:serviceaccount:default:${INSTANCES_ACCOUNT}`]),
  };
  return reportOf({
    drift: driftAct.value.result,
    deadline: deadlineAct.value,
    servingNeverBelow: driftAct.value.servingNeverBelow,
    desired: DESIRED,
    foreign: foreignChanges(entries, own),
    duplicatesCreated: duplicates.count(),
    inventoriesPerPassMax: inventoriesPerPassMax(entries, [from, to]),
    controlServingNeverBelow: control.value,
    client: { acts: [driftAct.counts, deadlineAct.counts], control: control.counts },
    requests: requestCounts(entries, [from, driftEnd]),
    durationMs: clock.monotonic() - startedAt,
  });
}

async function underLoad<T>(
  load: LoadProcess,
  name: string,
  happen: () => Promise<T>,
): Promise<{ readonly value: T; readonly counts: ActResult }> {
  await load.startAct(name);
  const value = await happen();
  return { value, counts: (await load.endAct(name)).result };
}

/** Writes to the terminal what the controller tells. */
async function narrate(client: ControllerClient, narrator: Narrator, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const entry of client.watch("default/orders", signal)) if (entry) narrator.journal(entry);
    } catch {
      // The watch stands again when the controller is back.
    }
    await clock.sleep(200, signal).catch(() => undefined);
  }
}
