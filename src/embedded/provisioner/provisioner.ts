/**
 * Makes nodes and takes them, as Karpenter and the clouds do: NodeClaims and Nodes in Karpenter's order, drift with its own replacement, interruption with a
 * deadline, sudden death, return. Nothing here asks Relevo, and nothing here is told by it.
 */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { isAlreadyExists } from "../../kube/api.ts";
import { NODE_CLAIMS, NODE_POOLS } from "../../kube/resources.ts";
import type { ClusterAccess } from "../controllers/access.ts";
import { EventRecorder } from "../controllers/events.ts";
import { ControllerLoop, type ReconcileResult } from "../controllers/loop.ts";
import { conditionOf, refOf, type NodeClaimView, type NodePoolView, type NodeView, type PodView } from "../controllers/views.ts";
import type { NodeFleet } from "../nodes/fleet.ts";
import { nodeClaimDraft, nodePoolDraft, poolHash, poolHashAnnotations, poolNameOf } from "./claim.ts";
import { Cloud, type Instance } from "./cloud.ts";
import { isDeleting, isTrue, ProvisionerContext } from "./context.ts";
import { consolidateEmpty, disruptDrifted, finishReplacements, type EmptySince, type Replacements } from "./disruption.ts";
import { NODE_POOL_HASH, NODE_POOL_LABEL } from "./labels.ts";
import { launchClaim, nodeSpecOf, offeringOf } from "./launch.ts";
import type { CapacityType, Offering, OfferingFilter } from "./offerings.ts";
import type { ProvisionerOptions } from "./options.ts";
import { writePoolStatus } from "./pool-status.ts";
import { priorityOf } from "../scheduler/choose-node.ts";
import { emptiestZone, type MachineShape, machinesForPods } from "./provisioning.ts";
import { removeNode, terminateClaim } from "./termination.ts";

/** What a notice about an interruption is made of. */
export interface Interruption {
  readonly nodeName: string;
  readonly instanceId: string;
  readonly providerID: string;
  readonly zone: string;
  readonly region: string;
  readonly account: string;
  /** When it was decided, RFC 3339. */
  readonly time: string;
  /** When the machine is taken. */
  readonly deadline: Instant;
}

export interface NodeSummary {
  readonly name: string;
  readonly claim: string | undefined;
  readonly instanceId: string | undefined;
  readonly zone: string | undefined;
  readonly isReady: boolean;
  readonly isUnschedulable: boolean;
  readonly isDrifted: boolean;
  readonly isDeleting: boolean;
  readonly pods: number;
}

export interface OfferingSummary extends Offering {
  readonly running: number;
  /** Null: as many as are wanted. */
  readonly limit: number | null;
}

const PASS = "pass";
const READINESS_POLL_MS = 250;

export class Provisioner {
  readonly #context: ProvisionerContext;
  readonly #access: ClusterAccess;
  readonly #options: ProvisionerOptions;
  readonly #cloud: Cloud;
  readonly #claimLoop: ControllerLoop;
  readonly #capacityLoop: ControllerLoop;
  readonly #disruptionLoop: ControllerLoop;
  readonly #replacements: Replacements = new Map();
  readonly #emptySince: EmptySince = new Map();
  /** Claims made at the start boot without delay. */
  readonly #first = new Set<string>();
  readonly #nodelessSince = new Map<string, number>();
  #lastDisruptionAt = Number.NEGATIVE_INFINITY;

  constructor(access: ClusterAccess, fleet: NodeFleet, options: ProvisionerOptions, recordEvents = true) {
    this.#access = access;
    this.#options = options;
    this.#cloud = new Cloud({
      clock: access.clock,
      random: access.random,
      machines: {
        boot: (instance) => fleet.start(nodeSpecOf(instance, options, this.#context.offerings.capacityOf(instance.instanceType))),
        take: (instance) => fleet.takeMachine(instance.nodeName),
      },
      changed: (instance) => this.#instanceChanged(instance),
      failed: (instance, error) => access.log("error", "a machine did not do as the cloud said", { node: instance.nodeName, error }),
    });
    this.#context = new ProvisionerContext(access, this.#cloud, fleet, new EventRecorder(access, "karpenter", recordEvents), options);
    const common = { clock: access.clock, log: access.log, signal: access.signal };
    this.#claimLoop = new ControllerLoop({ ...common, name: "node-claim", reconcile: (key) => this.#reconcileClaim(key) });
    this.#capacityLoop = new ControllerLoop({ ...common, name: "node-capacity", reconcile: () => this.#reconcileCapacity() });
    this.#disruptionLoop = new ControllerLoop({ ...common, name: "node-disruption", reconcile: () => this.#reconcileDisruption() });
    this.#wire();
    access.signal.addEventListener("abort", () => this.#cloud.close(), { once: true });
  }

  /** Call after the caches are filled. Settles when the NodePool is there and the first machines are ordered. */
  async start(): Promise<void> {
    const pool = await this.#ensurePool("spot");
    if (this.#options.maxOnDemand > 0) await this.#ensurePool("on-demand");
    const first = this.#context.offerings.all().filter(isFirstChoice(this.#options));
    for (let index = 0; index < this.#options.minNodes; index++) {
      const offering = first[index % first.length];
      if (offering === undefined) break;
      const claim = await this.#launch(pool, offering);
      this.#first.add(claim.metadata.name);
    }
    for (const loop of [this.#claimLoop, this.#capacityLoop, this.#disruptionLoop]) loop.start();
    this.#disruptionLoop.enqueue(PASS);
  }

  /** Settles when the minimum of nodes is ready for pods. */
  async whenUp(): Promise<void> {
    const isUp = (): boolean =>
      this.#context.allClaims().filter((claim) => isTrue(claim, "Ready") && !isDeleting(claim)).length >= this.#options.minNodes;
    const up = Promise.withResolvers<void>();
    this.#context.claims.onChange(() => {
      if (isUp()) up.resolve();
    });
    if (isUp()) up.resolve();
    await up.promise;
  }

  nodes(): readonly NodeSummary[] {
    return (this.#context.nodes.values() as readonly NodeView[])
      .map((node) => {
        const claim = this.#context.claimOf(node);
        const instance = this.#cloud.byProviderID(node.spec.providerID);
        return {
          name: node.metadata.name,
          claim: claim?.metadata.name,
          instanceId: instance?.instanceId,
          zone: instance?.zone,
          isReady: conditionOf(node.status?.conditions, "Ready")?.status === "True",
          isUnschedulable: node.spec.unschedulable === true,
          isDrifted: claim !== undefined && isTrue(claim, "Drifted"),
          isDeleting: isDeleting(node),
          pods: this.#context.podsOn(node.metadata.name).length,
        };
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** How many machines the cloud has of what matches; null: as many as are wanted. What runs already runs on. */
  limit(filter: OfferingFilter, machines: number | null): readonly OfferingSummary[] {
    const concerned = this.#context.offerings.limit(filter, machines);
    this.#capacityLoop.enqueue(PASS);
    return this.offerings().filter((summary) => concerned.some((offering) => isSameOffering(offering, summary)));
  }

  offerings(): readonly OfferingSummary[] {
    const { offerings } = this.#context;
    return offerings.all().map((offering) => ({ ...offering, running: this.#cloud.countOf(offering), limit: offerings.limitOf(offering) }));
  }

  /** The machine's image is no longer the wanted one; with `clear` it is again. */
  async drift(nodeName: string, { clear = false }: { readonly clear?: boolean } = {}): Promise<void> {
    this.#cloud.setDrifted(this.#runningInstance(nodeName), !clear);
    const claim = this.#claimOfNode(nodeName);
    await this.#markDrift(claim);
  }

  /** Orders the end of a machine. Nobody is told by this: the answer is what a notice needs. */
  interrupt(nodeName: string, { deadlineMs }: { readonly deadlineMs: number }): Interruption {
    const instance = this.#cloud.interrupt(this.#runningInstance(nodeName), deadlineMs);
    const { instanceId, providerID, zone, takenAt = this.#access.clock.now() } = instance;
    const { region, account } = this.#options;
    return { nodeName, instanceId, providerID, zone, region, account, time: formatInstant(this.#access.clock.now()), deadline: takenAt };
  }

  /** SIGKILL to every process of the node, no notice. Its objects go later, as those of a lost machine. */
  async kill(nodeName: string): Promise<void> {
    await this.#cloud.take(this.#runningInstance(nodeName));
  }

  /** A node whose machine was lost boots again under its name: as the same Node object, or as a new one. Settles when the boot began. */
  async returnNode(nodeName: string, { sameUid }: { readonly sameUid: boolean }): Promise<void> {
    const instance = this.#cloud.byNode(nodeName);
    if (instance === undefined || instance.state === "running") {
      throw new RelevoError("node_not_lost", `Node ${nodeName} cannot come back: it is not lost.`, {
        found: instance?.state ?? "no such node",
        allowed: "a node that was killed or interrupted and has not vanished yet",
      });
    }
    const node = this.#context.nodes.get(nodeName) as NodeView | undefined;
    if (!sameUid && node !== undefined) await removeNode(this.#context, node);
    this.#cloud.restore(instance);
  }

  #wire(): void {
    const { claims, nodes, pods, pools } = this.#context;
    claims.onChange(({ key, after }) => {
      this.#claimLoop.enqueue(key);
      if (after === undefined || this.#replacements.size > 0 || isTrue(after as NodeClaimView, "Ready")) this.#disruptionLoop.enqueue(PASS);
      if (after === undefined || isDeleting(after)) this.#capacityLoop.enqueue(PASS);
    });
    nodes.onChange(({ before, after }) => {
      for (const node of [before, after]) {
        const claim = node === undefined ? undefined : this.#context.claimOf(node as NodeView);
        if (claim !== undefined) this.#claimLoop.enqueue(claim.metadata.name);
      }
    });
    pods.onChange(({ before, after }) => {
      const nodeName = ((after ?? before) as PodView | undefined)?.spec.nodeName ?? "";
      if (after !== undefined && isUnschedulable(after as PodView)) this.#capacityLoop.enqueueAfter(PASS, this.#options.batchMs);
      const node = nodeName === "" ? undefined : (nodes.get(nodeName) as NodeView | undefined);
      const claim = node === undefined ? undefined : this.#context.claimOf(node);
      if (claim !== undefined && isDeleting(claim)) this.#claimLoop.enqueue(claim.metadata.name);
      if (after === undefined && claim !== undefined) this.#disruptionLoop.enqueue(PASS);
    });
    pools.onChange(() => {
      for (const claim of this.#context.allClaims()) this.#claimLoop.enqueue(claim.metadata.name);
    });
  }

  async #reconcileClaim(name: string): Promise<ReconcileResult | void> {
    const claim = this.#context.claim(name);
    if (claim === undefined) {
      this.#first.delete(name);
      this.#nodelessSince.delete(name);
      return;
    }
    if (isDeleting(claim)) return await terminateClaim(this.#context, claim);
    const node = this.#context.nodeOf(claim);
    const instance = this.#cloud.byProviderID(claim.status?.providerID);
    // A Node that is being deleted takes its claim along, and so does one that is gone for good.
    if (node !== undefined && isDeleting(node)) return await this.#access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
    if (instance?.state === "gone") return; // whether it vanishes or comes back is decided elsewhere
    if (node === undefined && isTrue(claim, "Registered")) return await this.#outliveNode(claim);
    this.#nodelessSince.delete(name);
    const isLaunched = await launchClaim(this.#context, claim, this.#first.has(name) ? 0 : this.#options.bootDelayMs);
    if (!isLaunched) return;
    const current = this.#context.claim(name);
    if (current === undefined || isDeleting(current)) return;
    await this.#markDrift(current);
    if (!isTrue(current, "Registered")) return await this.#awaitRegistration(current);
  }

  /** A machine that never becomes a node is given up, so that another takes its place. */
  async #awaitRegistration(claim: NodeClaimView): Promise<ReconcileResult | void> {
    const { bootDelayMs, registerWithinMs } = this.#options;
    const leftMs = Date.parse(claim.metadata.creationTimestamp) + bootDelayMs + registerWithinMs - this.#access.clock.now();
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    this.#access.log("warn", "a machine did not register in time and is given up", {
      claim: claim.metadata.name,
      afterMs: bootDelayMs + registerWithinMs,
    });
    await this.#access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
  }

  /** A claim whose Node object somebody removed goes after the same time as one whose machine was lost. */
  async #outliveNode(claim: NodeClaimView): Promise<ReconcileResult> {
    const now = this.#access.clock.monotonic();
    const since = this.#nodelessSince.get(claim.metadata.name) ?? now;
    this.#nodelessSince.set(claim.metadata.name, since);
    const leftMs = since + this.#options.vanishAfterMs - now;
    if (leftMs <= 0) await this.#access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
    return { requeueAfterMs: leftMs > 0 ? leftMs : undefined };
  }

  async #markDrift(claim: NodeClaimView): Promise<void> {
    const pool = this.#context.poolOf(claim);
    const isPoolDrifted = pool !== undefined && claim.metadata.annotations?.[NODE_POOL_HASH] !== poolHash(pool);
    const isMachineDrifted = this.#cloud.byProviderID(claim.status?.providerID)?.isDrifted === true;
    if (!isTrue(claim, "Launched")) return;
    if (!isPoolDrifted && !isMachineDrifted) return void (await this.#context.clearCondition(claim, "Drifted"));
    const reason = isPoolDrifted ? "NodePoolDrifted" : "AMIDrift";
    await this.#context.setConditions(claim, { type: "Drifted", status: "True", reason, message: reason });
    this.#disruptionLoop.enqueue(PASS);
  }

  /** Launches what is missing for unschedulable pods and for the minimum. */
  async #reconcileCapacity(): Promise<ReconcileResult | void> {
    const { offerings } = this.#context;
    const live = this.#context.allClaims().filter((claim) => !isDeleting(claim));
    const present = live.map((claim) => offeringOf(this.#context, claim));
    const countOf = (capacityType: CapacityType): number => present.filter((offering) => offering.capacityType === capacityType).length;
    const pods = this.#context.pods.values() as readonly PodView[];
    const unschedulable = pods.filter(isUnschedulable).toSorted((a, b) => priorityOf(b) - priorityOf(a));
    const wanted = machinesForPods({
      pods: unschedulable,
      nodes: this.#context.nodes.values() as readonly NodeView[],
      podsOnNodes: pods.filter((pod) => (pod.spec.nodeName ?? "") !== ""),
      coming: live.filter((claim) => !isTrue(claim, "Initialized")).map((claim) => this.#shapeOf(offeringOf(this.#context, claim))),
      shapes: offerings.available().map((offering) => this.#shapeOf(offering)),
      room: { spot: this.#options.maxNodes - countOf("spot"), "on-demand": this.#options.maxOnDemand - countOf("on-demand") },
    });
    for (const offering of wanted) if (await this.#launchOf(offering)) present.push(offering);
    const isShort = await this.#keepMinimum(present);
    // What was left out for want of capacity is tried again when its time is over.
    if (unschedulable.length > 0 || isShort) return { requeueAfterMs: offerings.nextBackInMs() };
  }

  /** True when machines are missing that cannot be had now. */
  async #keepMinimum(present: Offering[]): Promise<boolean> {
    const spot = present.filter(({ capacityType }) => capacityType === "spot");
    while (spot.length < this.#options.minNodes) {
      const available = this.#context.offerings.available().filter(({ capacityType }) => capacityType === "spot");
      const [type] = available.map(({ instanceType }) => instanceType);
      const alike = available.filter(({ instanceType }) => instanceType === type);
      const zone = emptiestZone(
        spot.map((each) => each.zone),
        alike.map((each) => each.zone),
      );
      const offering = alike.find((each) => each.zone === zone);
      if (offering === undefined || !(await this.#launchOf(offering))) return true;
      spot.push(offering);
    }
    return false;
  }

  async #reconcileDisruption(): Promise<ReconcileResult> {
    await finishReplacements(this.#context, this.#replacements);
    const now = this.#access.clock.monotonic();
    let dueMs = this.#lastDisruptionAt + this.#options.disruptionIntervalMs - now;
    if (dueMs <= 0) {
      this.#lastDisruptionAt = now;
      dueMs = this.#options.disruptionIntervalMs;
      await disruptDrifted(this.#context, this.#replacements, (claim) => this.#launchInstead(claim));
    }
    await writePoolStatus(this.#context);
    const emptyMs = await consolidateEmpty(this.#context, this.#emptySince);
    return { requeueAfterMs: Math.max(1, Math.min(dueMs, emptyMs ?? dueMs, this.#replacements.size > 0 ? READINESS_POLL_MS : dueMs)) };
  }

  /** A machine that is gone without its claim being deleted has been lost: its objects vanish, unless it comes back before. */
  #instanceChanged(instance: Instance): void {
    if (instance.state !== "gone") return;
    this.#access.clock.after(this.#options.vanishAfterMs, () => {
      void this.#vanish(instance).catch((error: unknown) =>
        this.#access.log("warn", "a lost node did not vanish", { node: instance.nodeName, error }),
      );
    });
  }

  async #vanish(instance: Instance): Promise<void> {
    if (this.#access.signal.aborted || this.#cloud.byProviderID(instance.providerID)?.state !== "gone") return;
    const node = this.#context.nodes.byIndex("provider", instance.providerID)[0] as NodeView | undefined;
    if (node !== undefined) await removeNode(this.#context, node);
    const claim = this.#context.claims.byIndex("provider", instance.providerID)[0] as NodeClaimView | undefined;
    if (claim !== undefined) await this.#access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
  }

  async #ensurePool(capacityType: CapacityType): Promise<NodePoolView> {
    let pool: NodePoolView;
    try {
      pool = (await this.#access.create(NODE_POOLS, nodePoolDraft(this.#options, capacityType))) as NodePoolView;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      pool = (await this.#access.api.get({
        type: NODE_POOLS,
        name: poolNameOf(this.#options, capacityType),
      })) as NodePoolView;
    }
    return (await this.#access.patch(refOf(NODE_POOLS, pool), { metadata: { annotations: poolHashAnnotations(pool) } })) as NodePoolView;
  }

  async #launch(pool: NodePoolView, offering: Offering): Promise<NodeClaimView> {
    return (await this.#access.create(NODE_CLAIMS, nodeClaimDraft(pool, offering))) as NodeClaimView;
  }

  /** False when its NodePool is gone or going. */
  async #launchOf(offering: Offering): Promise<boolean> {
    const pool = this.#context.poolFor(offering.capacityType);
    if (pool === undefined || isDeleting(pool)) return false;
    await this.#launch(pool, offering);
    return true;
  }

  async #launchInstead(claim: NodeClaimView): Promise<NodeClaimView> {
    const offering = offeringOf(this.#context, claim);
    const pool = this.#context.poolFor(offering.capacityType);
    if (pool === undefined)
      throw new RelevoError("node_pool_missing", `The NodePool of ${offering.capacityType} is gone; nothing can be launched.`, {
        class: "retryable",
      });
    return await this.#launch(pool, offering);
  }

  #shapeOf(offering: Offering): MachineShape {
    const pool = this.#context.poolFor(offering.capacityType);
    const name = poolNameOf(this.#options, offering.capacityType);
    return {
      offering,
      labels: { ...pool?.spec.template.metadata?.labels, [NODE_POOL_LABEL]: name },
      capacity: this.#context.offerings.capacityOf(offering.instanceType),
    };
  }

  #runningInstance(nodeName: string): Instance {
    const instance = this.#cloud.byNode(nodeName);
    if (instance?.state === "running") return instance;
    const names = this.nodes().map((node) => node.name);
    throw new RelevoError("node_unknown", `There is no running machine behind node ${nodeName}.`, {
      found: nodeName,
      allowed: names.join(", "),
    });
  }

  #claimOfNode(nodeName: string): NodeClaimView {
    const node = this.#context.nodes.get(nodeName) as NodeView | undefined;
    const claim = node === undefined ? undefined : this.#context.claimOf(node);
    if (claim === undefined) throw new RelevoError("node_claim_unknown", `Node ${nodeName} has no NodeClaim.`, { found: nodeName });
    return claim;
  }
}

function isFirstChoice({ instanceType }: ProvisionerOptions): (offering: Offering) => boolean {
  return (offering) => offering.capacityType === "spot" && offering.instanceType === instanceType;
}

function isSameOffering(a: Offering, b: Offering): boolean {
  return a.zone === b.zone && a.instanceType === b.instanceType && a.capacityType === b.capacityType;
}

function isUnschedulable(pod: PodView): boolean {
  const scheduled = conditionOf(pod.status?.conditions, "PodScheduled");
  return (pod.spec.nodeName ?? "") === "" && !isDeleting(pod) && scheduled?.status === "False" && scheduled.reason === "Unschedulable";
}
