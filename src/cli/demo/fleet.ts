/** A whole Relevo on this machine, with the ledger beside it and the pools of the example: what the demo and the benches begin with. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { KubeApi, KubeObjectDraft } from "../../kube/api.ts";
import { loadKubeApi } from "../../kube/config.ts";
import { POOLS } from "../../kube/resources.ts";
import { ControllerClient } from "../client.ts";
import { type Stack, startStack } from "../processes/stack.ts";
import type { LoadOptions } from "./load/client.ts";
import { startLedgerProcess } from "./load/client-process.ts";
import { DemoWorld } from "./world.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Karpenter looks every 10 s; the demo's provisioner more often, so that nobody waits for it. */
const DISRUPTION_INTERVAL_MS = 2_000;
const NODES_WITHIN_MS = 60_000;
const SERVING_WITHIN_MS = 60_000;

export interface FleetOptions {
  /** Where the run file goes; null: into a folder that goes with the fleet. */
  readonly cwd: string | null;
  readonly nodes: number;
  /** Two unless said otherwise. */
  readonly zones?: readonly string[];
  /** What this machine takes at once; the controller's own beginning unless said otherwise. */
  readonly absorption?: { readonly perSecond: number; readonly burst: number };
  /** Machines on demand beside them; none unless said otherwise. */
  readonly onDemand?: number;
  /** From the notice of an interruption to the loss of the machine. */
  readonly spotLeadMs: number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly signal: AbortSignal;
  readonly logLevel: string;
  readonly onDeath: (name: string, how: string) => void;
}

export interface PoolVariant {
  readonly name: string;
  readonly mode: "Act" | "Off";
}

export interface Fleet {
  readonly stack: Stack;
  readonly kube: KubeApi;
  readonly client: ControllerClient;
  readonly world: DemoWorld;
  /** Store, cluster and logs lie beneath it; it goes with the fleet. */
  readonly dir: string;
  /** Done in reverse order before the fleet itself stops. */
  readonly undo: (() => Promise<unknown> | unknown)[];
  /** Applies the example's pool and waits until all of it serves. */
  addPool(variant: PoolVariant, desired: number): Promise<void>;
  removePool(name: string): Promise<void>;
  /** How many machines of spot the cloud has for each offering; null: as many as are wanted. */
  limitSpot(machines: number | null): Promise<void>;
  /** Of the client that sends to this pool. */
  loadOf(pool: string): LoadOptions;
  stop(): Promise<void>;
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { clock, signal } = options;
  const dir = mkdtempSync(join(tmpdir(), "relevo-demo-"));
  const undo: Fleet["undo"] = [() => rmSync(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const step of undo.splice(0).toReversed()) await step();
  };
  try {
    const ledgerStart = startLedgerProcess(join(dir, "ledger.log"));
    undo.push(() => ledgerStart.then((ledger) => ledger.stop()).catch(() => undefined)); // one that did not start needs no end
    ledgerStart.catch(() => undefined); // it is awaited once the stack is up
    const stack = await startStack({
      cwd: options.cwd ?? dir,
      dir,
      nodes: options.nodes,
      zones: options.zones ?? ["zone-a", "zone-b"],
      onDemand: options.onDemand ?? 0,
      bootDelayMs: 1_500,
      disruptionIntervalMs: DISRUPTION_INTERVAL_MS,
      spotLeadMs: options.spotLeadMs,
      ...(options.absorption === undefined ? {} : { absorption: options.absorption }),
      ports: { gateway: 0, controller: 0, cluster: 0, admin: 0 },
      logLevel: options.logLevel,
      token: null,
      clock,
      onDeath: options.onDeath,
    });
    undo.push(() => stack.stop());
    const ledger = await ledgerStart;
    const kube = await loadKubeApi({ kubeconfig: stack.kubeconfig });
    undo.push(() => kube.close());
    const client = new ControllerClient({ url: stack.controllerUrl, token: null, webhookSecret: stack.webhookSecret, fetch, clock });
    const world = new DemoWorld({ client, adminUrl: stack.adminUrl, webhookSecret: stack.webhookSecret, ids: options.ids, clock, signal });
    // A pool that comes before its nodes would land on the first of them alone.
    await world.until(
      `${options.nodes} nodes`,
      SERVING_WITHIN_MS,
      async () => (await world.nodes()).filter(({ ready }) => ready).length >= options.nodes,
    );
    // Pods that came before the other nodes would all be put on the first one.
    const haveNodes = async () => (await world.nodes()).filter(({ ready }) => ready).length >= options.nodes;
    await world.until(`${options.nodes} ready nodes`, NODES_WITHIN_MS, haveNodes);
    return {
      stack,
      kube,
      client,
      world,
      dir,
      undo,
      async addPool(variant, desired) {
        await kube.create(POOLS, poolDocument(variant, ledger.url), { namespace: "default" });
        const serves = async () => (await world.serving(`default/${variant.name}`)) >= desired;
        await world.until(`${desired} serving instances of ${variant.name}`, SERVING_WITHIN_MS, serves);
      },
      removePool: async (name) => void (await kube.delete({ type: POOLS, namespace: "default", name })),
      limitSpot: (machines) => world.limitSpot(machines),
      loadOf: (host) => ({ url: stack.gatewayUrl, http2Url: stack.gatewayUrl, host, ledgerUrl: ledger.url }),
      stop,
    };
  } catch (error) {
    if (!signal.aborted) undo.shift(); // the folder with its logs is left: the error says to look there
    await stop();
    throw error;
  }
}

interface OrdersDocument extends KubeObjectDraft {
  readonly spec: { readonly disruption: object; readonly traffic: object; readonly blueprint: { readonly objects: readonly [Deployment] } };
}

interface Deployment {
  readonly spec: { readonly template: { readonly spec: { readonly containers: [{ env?: { name: string; value: string }[] }] } } };
}

/** The example's own document; what differs is the name, the mode, and that each instance is told where the ledger is. */
function poolDocument({ name, mode }: PoolVariant, ledgerUrl: string): KubeObjectDraft {
  const document = parse(readFileSync(join(ROOT, "examples/orders/pool.yaml"), "utf8")) as OrdersDocument;
  const [container] = document.spec.blueprint.objects[0].spec.template.spec.containers;
  container.env = [...(container.env ?? []), { name: "LEDGER_URL", value: ledgerUrl }];
  const spec = {
    ...document.spec,
    deletion: "drain",
    disruption: { ...document.spec.disruption, mode },
    traffic: { ...document.spec.traffic, route: name },
  };
  return { ...document, metadata: { ...document.metadata, name }, spec };
}
