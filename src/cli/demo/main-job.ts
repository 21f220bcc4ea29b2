/**
 * `relevo demo`: the main job on one machine. A pool of real processes outlives its nodes while a real client counts; then the control, which must lose.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Random } from "../../kernel/random.ts";
import type { KubeApi, KubeObjectDraft } from "../../kube/api.ts";
import { loadKubeApi } from "../../kube/config.ts";
import { POOLS } from "../../kube/resources.ts";
import { ControllerClient } from "../client.ts";
import { type Stack, startStack } from "../processes/stack.ts";
import { ACTS, type ActName, controllerKilled, deadline, forced, type PlayedAct, playAct, type Stage, voluntary } from "./acts.ts";
import { playControl } from "./control.ts";
import { watchDuplicates } from "./duplicates.ts";
import type { LoadOptions } from "./load/client.ts";
import { LoadProcess, startLedgerProcess } from "./load/client-process.ts";
import type { Narrator } from "./narrator.ts";
import { type DemoReport, reportOf } from "./report.ts";
import { DemoWorld } from "./world.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const POOL = "default/orders";
const CONTROL_POOL = "default/orders-control";
const WARM_UP_MS = 4_000;
const SERVING_WITHIN_MS = 60_000;
/** Karpenter looks every 10 s; the demo's provisioner more often, so that nobody waits for it. */
const DISRUPTION_INTERVAL_MS = 2_000;

export interface DemoOptions {
  /** Where the run file goes. */
  readonly cwd: string;
  /** From the notice to the loss of the machine. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
  readonly logLevel: string;
}

export interface RunningDemo {
  readonly report: DemoReport;
  readonly stack: Stack;
  stop(): Promise<void>;
}

/** Plays everything and leaves the fleet running; `stop` ends it. */
export async function playMainJob(options: DemoOptions): Promise<RunningDemo> {
  const { clock, narrator, signal } = options;
  const startedAt = clock.monotonic();
  const dir = mkdtempSync(join(tmpdir(), "relevo-demo-"));
  const undo: (() => Promise<unknown> | unknown)[] = [() => rmSync(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const step of undo.toReversed()) await step();
  };

  try {
    narrator.title("starting: embedded cluster (6 nodes, 2 zones), controller, gateway");
    const ledger = await startLedgerProcess(join(dir, "ledger.log"));
    undo.push(() => ledger.stop());
    const stack = await startStack({
      cwd: options.cwd,
      dir,
      nodes: 6,
      zones: ["zone-a", "zone-b"],
      bootDelayMs: 1_500,
      disruptionIntervalMs: DISRUPTION_INTERVAL_MS,
      spotLeadMs: options.deadlineMs,
      ports: { gateway: 0, controller: 0, cluster: 0, admin: 0 },
      logLevel: options.logLevel,
      clock,
      onDeath: (name, how) => narrator.tell(`the process ${name} ended (${how}) and is started again`),
    });
    undo.push(() => stack.stop());
    const kube = loadKubeApi({ kubeconfig: stack.kubeconfig });
    undo.push(() => kube.close());
    const duplicates = await watchDuplicates({ kube, clock, random: options.random });
    undo.push(() => duplicates.stop());
    const client = new ControllerClient({ url: stack.controllerUrl, token: null, webhookSecret: stack.webhookSecret, fetch, clock });
    const world = new DemoWorld({ client, adminUrl: stack.adminUrl, webhookSecret: stack.webhookSecret, ids: options.ids, clock, signal });
    const over = new AbortController();
    undo.push(() => over.abort());
    void narrate(client, narrator, clock, AbortSignal.any([signal, over.signal]));

    narrator.title("the pool orders: 4 real processes behind the gateway");
    await applyPool(kube, { name: "orders", mode: "Act", ledgerUrl: ledger.url });
    const desired = 4;
    await world.until(`${desired} serving instances`, SERVING_WITHIN_MS, async () => (await world.serving(POOL)) >= desired);

    const loadOf = (host: string): LoadOptions => ({ url: stack.gatewayUrl, http2Url: stack.gatewayUrl, host, ledgerUrl: ledger.url });
    const load = await LoadProcess.start(loadOf("orders"));
    undo.push(() => load.kill());
    const stage: Stage = {
      world,
      load,
      supervisor: stack.supervisor,
      clock,
      pool: POOL,
      desired,
      deadlineMs: options.deadlineMs,
      signal,
      tell: (sentence) => narrator.tell(sentence),
      progress: (act, counts) => narrator.counts(act, counts),
    };

    narrator.title("load: short requests, streams, WebSockets, transactions; first a stretch that nobody disturbs");
    await clock.sleep(WARM_UP_MS, signal);
    const undisturbed = await playAct(stage, "undisturbed", async () => undefined);
    const played = await playActs(stage, narrator);

    const evidence = await world.evidence(POOL);

    narrator.title("control: the same acts with disruption.mode Off, on a pool of its own");
    await applyPool(kube, { name: "orders-control", mode: "Off", ledgerUrl: ledger.url });
    await world.until("the control pool", SERVING_WITHIN_MS, async () => (await world.serving(CONTROL_POOL)) >= desired);
    const control = await playControl({ ...stage, pool: CONTROL_POOL }, loadOf("orders-control"));
    await removePool(kube, "orders-control");
    await load.stop();

    const report = reportOf({
      acts: Object.fromEntries(ACTS.map((name) => [name, played[name].result])) as Record<ActName, PlayedAct["result"]>,
      undisturbed: undisturbed.result,
      control,
      servingNeverBelow: played.voluntary.servingNeverBelow,
      desired,
      evidence,
      duplicatesCreated: duplicates.count(),
      durationMs: clock.monotonic() - startedAt,
    });
    return { report, stack, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function playActs(stage: Stage, narrator: Narrator): Promise<Readonly<Record<ActName, PlayedAct>>> {
  const scripts: Readonly<Record<ActName, { readonly title: string; readonly happen: () => Promise<void> }>> = {
    voluntary: { title: "act 1, voluntary: a node drifts", happen: () => voluntary(stage) },
    deadline: { title: `act 2, deadline: a spot interruption in ${stage.deadlineMs / 1000} s`, happen: () => deadline(stage) },
    forced: { title: "act 3, forced: a node dies without notice", happen: () => forced(stage) },
    controller: { title: "act 4, controller: killed between two steps of a replacement", happen: () => controllerKilled(stage) },
  };
  const played: Partial<Record<ActName, PlayedAct>> = {};
  for (const name of ACTS) {
    narrator.title(scripts[name].title);
    played[name] = await playAct(stage, name, scripts[name].happen);
  }
  return played as Record<ActName, PlayedAct>;
}

/** Writes to the terminal what the controller tells, through its restarts. */
async function narrate(client: ControllerClient, narrator: Narrator, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const entry of client.watch(POOL, signal)) if (entry) narrator.journal(entry);
    } catch {
      // The controller is down for a moment: the watch stands again when it is back.
    }
    await clock.sleep(200, signal).catch(() => undefined);
  }
}

interface PoolVariant {
  readonly name: string;
  readonly mode: "Act" | "Off";
  readonly ledgerUrl: string;
}

/** The example's own document, with the ledger's address, absolute paths, and the mode. */
async function applyPool(kube: KubeApi, { name, mode, ledgerUrl }: PoolVariant): Promise<void> {
  const text = readFileSync(join(ROOT, "examples/orders/pool.yaml"), "utf8");
  const document = parse(
    text.replace("http://127.0.0.1:9090", ledgerUrl).replace("examples/orders/orders.mjs", join(ROOT, "examples/orders/orders.mjs")),
  ) as KubeObjectDraft & {
    readonly spec: { readonly disruption: object; readonly traffic: object };
  };
  const spec = {
    ...document.spec,
    deletion: "drain",
    disruption: { ...document.spec.disruption, mode },
    traffic: { ...document.spec.traffic, route: name },
  };
  await kube.create(POOLS, { ...document, metadata: { ...document.metadata, name }, spec }, { namespace: "default" });
}

async function removePool(kube: KubeApi, name: string): Promise<void> {
  await kube.delete({ type: POOLS, namespace: "default", name });
}
