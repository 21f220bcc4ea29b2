/**
 * The replicas as Leases of one namespace: each holds its own, renews it, and watches all. The Lease of a replica that ended in good order is deleted.
 */
import { type Clock, formatInstant, type Timer } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";
import type { Random } from "../kernel/random.ts";
import { isAlreadyExists, isNotFound, type KubeApi, type ObjectRef } from "../kube/api.ts";
import { createInformer, type Informer } from "../kube/informer.ts";
import { LEASES } from "../kube/resources.ts";
import { type KubeLease, parseLease } from "../kube/types.ts";
import { MemberView } from "./member-view.ts";
import type { Member, Members } from "./members.ts";
import type { ControllerLog } from "./pass.ts";

export const CONTROLLER_LABEL = "relevo.dev/controller";
/** Of a Lease: where the replica's API is reached. */
export const API_ANNOTATION = "relevo.dev/api";

const RENEW_EVERY_MS = 1_000;
/** Without a change for so long a replica counts as dead. With what a take-over needs beside it, it stays below five seconds. */
export const LEASE_DURATION_MS = 4_000;
const GAP_MS = 2_500;
/** Leases of replicas that are dead for so long are deleted: a name that is gone never comes back by itself. */
const LITTER_AFTER_MS = 600_000;

export interface LeaseMembersOptions {
  readonly kube: KubeApi;
  readonly namespace: string;
  /** A name such as a Pod has. */
  readonly id: string;
  /** Of this process: new at each start. */
  readonly holder: string;
  /** Known at `start`. */
  readonly api: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ControllerLog;
}

export class LeaseMembers implements Members {
  readonly isShared = true;
  readonly self: string;
  readonly #options: LeaseMembersOptions;
  readonly #view: MemberView;
  readonly #leases: Informer<KubeLease & { readonly api: string | null }>;
  readonly #listeners = new Set<() => void>();
  readonly #joined = Promise.withResolvers<void>();
  #told = "";
  #live: readonly Member[] = [];
  #renewTimer: Timer | undefined;
  #lookTimer: Timer | undefined;
  #isStopped = false;
  #hasWarned = false;

  constructor(options: LeaseMembersOptions) {
    const { kube, namespace, clock, random, log, id, holder } = options;
    this.self = id;
    this.#options = options;
    this.#view = new MemberView({ self: id, holder, durationMs: LEASE_DURATION_MS, gapMs: GAP_MS });
    this.#leases = createInformer({
      api: kube,
      type: LEASES,
      namespace,
      labelSelector: CONTROLLER_LABEL,
      clock,
      random,
      log,
      parse: (object) => {
        const parsed = parseLease(object);
        return parsed.ok ? { ok: true, value: { ...parsed.value, api: object.metadata.annotations?.[API_ANNOTATION] ?? null } } : parsed;
      },
    });
    this.#leases.onChange(({ before, after }) => {
      if (after !== undefined) this.#saw(after);
      else if (before !== undefined) this.#view.gone(idOf(before));
      this.#look();
    });
  }

  async start(): Promise<void> {
    this.#leases.start();
    await this.#renew();
    await this.#leases.whenSynced();
    for (const lease of this.#leases.list()) this.#saw(lease);
    this.#look();
    // Its own Lease is seen: the others see it too, and what was there before it is known.
    await this.#joined.promise;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#renewTimer?.cancel();
    this.#lookTimer?.cancel();
    this.#leases.stop();
    this.#joined.resolve();
    if (this.#view.isSuperseded) return; // it is another one's
    await this.#options.kube.delete(this.#ref()).catch((error: unknown) => {
      if (!isNotFound(error)) this.#say("warn", "the Lease of this replica could not be deleted: the others wait until it counts as dead", error);
    });
  }

  live(): readonly Member[] {
    return this.#live;
  }

  isLive(): boolean {
    return !this.#isStopped && this.#view.isLive(this.#options.clock.monotonic());
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #saw(lease: KubeLease & { readonly api: string | null }): void {
    const { resourceVersion } = lease.metadata;
    const seen = { id: idOf(lease), api: lease.api, holder: lease.spec.holderIdentity, version: resourceVersion };
    this.#view.saw(seen, this.#options.clock.monotonic());
  }

  #look(): void {
    if (this.#isStopped) return;
    const now = this.#options.clock.monotonic();
    const next = this.#view.look(now);
    this.#lookTimer?.cancel();
    this.#lookTimer = next === null ? undefined : this.#options.clock.after(Math.max(1, next - now), () => this.#look());
    const isLive = this.#view.isLive(now);
    if (isLive) this.#joined.resolve();
    this.#live = this.#view.live(now);
    const told = JSON.stringify([isLive, this.#live]);
    if (told === this.#told) return;
    this.#options.log("info", "the replicas of the controller", { live: this.#live.map(({ id }) => id), isLive });
    this.#told = told;
    for (const listener of this.#listeners) listener();
  }

  async #renew(): Promise<void> {
    const startedAt = this.#options.clock.monotonic();
    try {
      await this.#write();
      this.#hasWarned = false;
    } catch (error) {
      if (!this.#hasWarned) this.#say("warn", "the Lease of this replica could not be renewed and is tried again", error);
      this.#hasWarned = true;
    }
    if (this.#isStopped) return;
    this.#sweep();
    const wait = Math.max(100, RENEW_EVERY_MS - (this.#options.clock.monotonic() - startedAt));
    this.#renewTimer = this.#options.clock.after(wait, () => void this.#renew());
    // Nothing may come back any more, and then nothing else looks.
    this.#look();
  }

  /** Whoever comes last under an id has it; who had it before finds another holder and takes nothing any more. */
  async #write(): Promise<void> {
    if (this.#view.isSuperseded) return;
    const { kube, namespace, id, holder, api, clock } = this.#options;
    const renewTime = microTime(formatInstant(clock.now()));
    const body = {
      metadata: { labels: { [CONTROLLER_LABEL]: id }, annotations: { [API_ANNOTATION]: api() } },
      spec: { holderIdentity: holder, leaseDurationSeconds: LEASE_DURATION_MS / 1_000, renewTime },
    };
    try {
      await kube.patch(this.#ref(), body);
    } catch (error) {
      if (!isNotFound(error) || this.#isStopped) throw error;
      const { name } = this.#ref();
      const object = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", ...body, metadata: { ...body.metadata, name, namespace } };
      await kube.create(LEASES, object, { namespace }).catch((refused: unknown) => {
        if (!isAlreadyExists(refused)) throw refused; // the next renewal patches it
      });
    }
  }

  #sweep(): void {
    const { kube, namespace, clock } = this.#options;
    for (const { id, version } of this.#view.deadSince(clock.monotonic() - LITTER_AFTER_MS)) {
      kube.delete({ type: LEASES, namespace, name: nameOf(id) }, { preconditions: { resourceVersion: version } }).catch((error: unknown) => {
        if (!isNotFound(error)) this.#say("debug", "a Lease of a dead replica could not be deleted", error);
      });
    }
  }

  #ref(): ObjectRef {
    return { type: LEASES, namespace: this.#options.namespace, name: nameOf(this.self) };
  }

  #say(level: "debug" | "warn", message: string, error: unknown): void {
    this.#options.log(level, message, { replica: this.self, error: describeError(error) });
  }
}

function nameOf(id: string): string {
  return `relevo-controller-${id}`;
}

function idOf(lease: KubeLease): string {
  return lease.metadata.labels[CONTROLLER_LABEL] ?? "";
}

/** Kubernetes' MicroTime has six digits and refuses three. */
function microTime(instant: string): string {
  return instant.replace(/\.(\d{3})Z$/, ".$1000Z");
}

