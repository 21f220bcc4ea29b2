/** All nodes of the cluster: starts and takes machines, and tells each kubelet of its pods. */
import { PODS } from "../../kube/resources.ts";
import type { ClusterAccess } from "../controllers/access.ts";
import type { Change } from "../controllers/informer.ts";
import type { PodView } from "../controllers/views.ts";
import { Kubelet, type NodeSpec } from "./kubelet.ts";
import { DEFAULT_KUBELET_OPTIONS, type KubeletOptions } from "./kubelet-context.ts";
import type { Machine, PodRuntime } from "./pod-runtime.ts";

export interface FleetOptions {
  readonly kubelet?: Partial<KubeletOptions>;
  readonly recordEvents?: boolean;
}

export class NodeFleet {
  readonly #access: ClusterAccess;
  readonly #runtime: PodRuntime;
  readonly #options: KubeletOptions;
  readonly #recordEvents: boolean;
  /** By node name: the machine that runs under it now. */
  readonly #kubelets = new Map<string, Kubelet>();

  constructor(access: ClusterAccess, runtime: PodRuntime, options: FleetOptions = {}) {
    this.#access = access;
    this.#runtime = runtime;
    this.#options = { ...DEFAULT_KUBELET_OPTIONS, ...options.kubelet };
    this.#recordEvents = options.recordEvents ?? true;
    access.informer(PODS).onChange((change) => this.#podChanged(change));
  }

  /** Boots a machine and registers its node. Rejects when a live machine has the name. */
  async start(spec: NodeSpec): Promise<void> {
    await this.takeMachine(spec.name);
    const machine: Machine = { name: spec.name, machineId: this.#access.ids.next("machine") };
    const kubelet = new Kubelet(spec, machine, this.#access, this.#runtime, this.#options, this.#recordEvents);
    this.#kubelets.set(spec.name, kubelet);
    await kubelet.start();
  }

  machine(nodeName: string): Machine | undefined {
    return this.#kubelets.get(nodeName)?.machine;
  }

  spec(nodeName: string): NodeSpec | undefined {
    return this.#kubelets.get(nodeName)?.spec;
  }

  /** True while the node's machine has not been taken. */
  runs(nodeName: string): boolean {
    return this.#kubelets.get(nodeName)?.isDead === false;
  }

  /** SIGKILL to everything on the node; its objects in the API stay as they are. */
  async takeMachine(nodeName: string): Promise<void> {
    const kubelet = this.#kubelets.get(nodeName);
    if (kubelet === undefined) return;
    kubelet.silence();
    await this.#runtime.kill(kubelet.machine);
  }

  /** Forgets a node whose object is gone. */
  async remove(nodeName: string): Promise<void> {
    await this.takeMachine(nodeName);
    this.#kubelets.delete(nodeName);
  }

  #podChanged(change: Change): void {
    const names = new Set([nodeOf(change.before), nodeOf(change.after)]);
    for (const name of names) if (name !== undefined) this.#kubelets.get(name)?.podChanged(change);
  }
}

function nodeOf(object: unknown): string | undefined {
  const name = (object as PodView | undefined)?.spec.nodeName;
  return name === "" ? undefined : name;
}
