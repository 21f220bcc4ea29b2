/**
 * One node's kubelet: registers the node, renews its lease while the machine answers, and keeps a worker for each of its pods. When the machine is gone it
 * falls silent at once: what is then known of the pods is only what the API still says.
 */
import { isAlreadyExists, isNotFound, type KubeObject } from "../../kube/api.ts";
import { CONFIG_MAPS, LEASES, NODES, PODS, SECRETS, apiVersionOf } from "../../kube/resources.ts";
import { NODE_LEASE_NAMESPACE } from "../controllers/node-lifecycle.ts";
import type { ClusterAccess } from "../controllers/access.ts";
import { EventRecorder } from "../controllers/events.ts";
import type { Change } from "../controllers/informer.ts";
import { isReady, isTerminal, refOf, type NodeView, type PodView, type Taint } from "../controllers/views.ts";
import type { KubeletContext, KubeletOptions } from "./kubelet-context.ts";
import { nodeConditions, nodeInfo } from "./node-status.ts";
import type { Machine, PodRuntime } from "./pod-runtime.ts";
import { PodWorker } from "./pod-worker.ts";

export interface NodeSpec {
  readonly name: string;
  readonly providerID: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly capacity: { readonly cpu: string; readonly memory: string; readonly pods: string };
}

/** Lease duration as the kubelet writes it; the node lifecycle judges by its own grace. */
const LEASE_SECONDS = 40;
/** How many heartbeats an answer of the machine may take. */
const ANSWER_BEATS = 3;

export class Kubelet {
  readonly machine: Machine;
  readonly spec: NodeSpec;
  readonly #access: ClusterAccess;
  readonly #runtime: PodRuntime;
  readonly #options: KubeletOptions;
  readonly #events: EventRecorder;
  readonly #workers = new Map<string, PodWorker>();
  readonly #dead = new AbortController();

  constructor(
    spec: NodeSpec,
    machine: Machine,
    access: ClusterAccess,
    runtime: PodRuntime,
    options: KubeletOptions,
    recordEvents: boolean,
  ) {
    this.spec = spec;
    this.machine = machine;
    this.#access = access;
    this.#runtime = runtime;
    this.#options = options;
    this.#events = new EventRecorder(access, "kubelet", recordEvents);
    access.signal.addEventListener("abort", () => this.#dead.abort(), { once: true });
  }

  get isDead(): boolean {
    return this.#dead.signal.aborted;
  }

  /** Boots the machine and registers the node; settles when its object is there and says Ready. */
  async start(): Promise<void> {
    await this.#runtime.boot(this.machine, () => this.silence());
    if (this.isDead) return;
    await this.#register();
    await this.#renewLease();
    void this.#beat();
    for (const pod of this.#access.informer(PODS).byIndex("node", this.spec.name)) this.#reconcile(pod as PodView);
  }

  /** A pod of this node, or one that was, has changed. */
  podChanged({ before, after }: Change): void {
    if (this.isDead) return;
    if (before !== undefined && before.metadata.uid !== after?.metadata.uid) this.#workers.get(before.metadata.uid)?.forced();
    if (after !== undefined) this.#reconcile(after as PodView);
  }

  /** The machine is gone or about to be: nothing is said or done any more. */
  silence(): void {
    this.#dead.abort();
  }

  #reconcile(pod: PodView): void {
    const { uid } = pod.metadata;
    const known = this.#workers.get(uid);
    if (known !== undefined) return known.update(pod);
    if (isTerminal(pod) && pod.metadata.deletionTimestamp === undefined) return;
    const worker = new PodWorker(pod, this.#context());
    this.#workers.set(uid, worker);
    void worker.gone.then(() => this.#workers.delete(uid));
    worker.start();
  }

  #context(): KubeletContext {
    const access = this.#access;
    return {
      access,
      clock: access.clock,
      ids: access.ids,
      runtime: this.#runtime,
      machine: this.machine,
      events: this.#events,
      options: this.#options,
      env: this.#options.env,
      signal: this.#dead.signal,
      stamp: () => access.stamp(),
      findConfig: (namespace, kind, name) => this.#findConfig(namespace, kind, name),
    };
  }

  async #findConfig(namespace: string, kind: "ConfigMap" | "Secret", name: string): Promise<KubeObject | undefined> {
    try {
      return await this.#access.api.get({ type: kind === "ConfigMap" ? CONFIG_MAPS : SECRETS, namespace, name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #register(): Promise<void> {
    const { name, labels, taints, providerID, capacity } = this.spec;
    const draft = {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels, annotations: { "node.alpha.kubernetes.io/ttl": "0" } },
      spec: { providerID, ...(taints.length === 0 ? {} : { taints }) },
    };
    let node: KubeObject;
    try {
      node = await this.#access.create(NODES, draft);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      node = await this.#access.patch({ type: NODES, name }, { spec: { providerID } });
    }
    const now = this.#access.stamp();
    const hostIP = this.#runtime.hostIP(this.machine);
    await this.#access.patchStatus(refOf(NODES, node), {
      metadata: { uid: node.metadata.uid },
      status: {
        capacity,
        allocatable: capacity,
        addresses: [...(hostIP === undefined ? [] : [{ type: "InternalIP", address: hostIP }]), { type: "Hostname", address: name }],
        nodeInfo: nodeInfo(this.machine),
        conditions: nodeConditions(node as NodeView, now),
      },
    });
    this.#events.record(node, "Normal", "Starting", "Starting kubelet.");
  }

  /** A heartbeat that gets no answer from the machine is not sent; a late answer, on a machine that is busy, still counts. */
  async #beat(): Promise<void> {
    const { clock } = this.#access;
    while (!this.isDead) {
      await clock.sleep(this.#options.heartbeatMs); // not with the signal: to listen to it costs more than the one beat that is left
      if (this.isDead || !(await this.#runtime.isAlive(this.machine, ANSWER_BEATS * this.#options.heartbeatMs)) || this.isDead) continue;
      try {
        await this.#renewLease();
        await this.#confirmReady();
      } catch (error) {
        if (!this.isDead) this.#access.log("debug", "a node's heartbeat failed", { node: this.spec.name, error });
      }
    }
  }

  /** Not for a Node object that somebody removed: the lease would belong to nobody. */
  async #renewLease(): Promise<void> {
    const { name } = this.spec;
    const node = this.#access.informer(NODES).get(name);
    if (node === undefined) return;
    const renewTime = this.#access.microStamp();
    const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    try {
      await this.#access.patch({ type: LEASES, namespace: NODE_LEASE_NAMESPACE, name }, { spec });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const draft = {
        apiVersion: apiVersionOf(LEASES),
        kind: "Lease",
        metadata: {
          name,
          namespace: NODE_LEASE_NAMESPACE,
          ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: node.metadata.uid }],
        },
        spec: { ...spec, acquireTime: renewTime },
      };
      await this.#access.create(LEASES, draft, NODE_LEASE_NAMESPACE);
    }
  }

  /** After a silence the node lifecycle has set Ready to Unknown, and its pods to not ready. */
  async #confirmReady(): Promise<void> {
    const node = this.#access.informer(NODES).get(this.spec.name) as NodeView | undefined;
    if (node === undefined || isReady(node) || node.spec.providerID !== this.spec.providerID) return;
    const { uid } = node.metadata;
    await this.#access.patchStatus(refOf(NODES, node), {
      metadata: { uid },
      status: { conditions: nodeConditions(node, this.#access.stamp()) },
    });
    for (const worker of this.#workers.values()) worker.resync();
  }
}
