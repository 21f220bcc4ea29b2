/** Follows a storm on a running Relevo until everybody who was announced has moved, or the time is over: what `relevo storm --wait` tells at the end. */
import type { Clock } from "../../kernel/clock.ts";
import { PRIORITIES, type Priority } from "../../model/membership.ts";
import { type InstanceView, instanceView, poolView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";
import { type ClassOutcome, type Evacuee, type Fate, fatesOf, orderOf, outcomeOf } from "./evacuation.ts";

export interface FollowedStorm {
  readonly classes: Readonly<Record<Priority, ClassOutcome>>;
  readonly order: string;
  /** Who was said not to be saved in time, and why. */
  readonly unsavable: readonly string[];
  /** Over the routes of all pools, while it lasted. */
  readonly requests: { readonly accepted: number; readonly rejected: number; readonly cut: number; readonly retried: number };
  readonly held: boolean;
}

const POLL_MS = 500;
const MAX_RECORDS = 1_000;
/** After the last node went: until what was lost with it is known. */
const KNOWN_WITHIN_MS = 30_000;

type Client = Pick<ControllerClient, "get" | "list">;

export class StormFollower {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #servingSince = new Map<string, number>();
  readonly #unsavable = new Map<string, string>();
  #evacuees: readonly Evacuee[] = [];
  #before: FollowedStorm["requests"] | undefined;

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Before the first notice: who serves on these nodes. */
  async begin(nodes: readonly { readonly name: string; readonly instances: readonly string[] }[]): Promise<void> {
    const pools = await this.#pools();
    this.#before = requestsOf(pools);
    const priorities = new Map(pools.map(({ pool, priority }) => [pool, priority]));
    const serving = new Map((await this.#instances()).flatMap((each) => (each.phase === "serving" ? [[each.id, each] as const] : [])));
    const noticedAt = this.#clock.now();
    this.#evacuees = nodes.flatMap(({ name, instances }) =>
      instances.flatMap((id): Evacuee[] => {
        const found = serving.get(id);
        if (found === undefined) return [];
        const { pool, ordinal } = found;
        return [{ instance: id, pool, priority: priorities.get(pool) ?? "standard", ordinal, node: name, noticedAt }];
      }),
    );
  }

  /** Settles when all have moved and their former processes are sealed, or `withinMs` and a little more after the notices. */
  async end(withinMs: number, signal: AbortSignal): Promise<FollowedStorm> {
    const end = this.#clock.monotonic() + withinMs + KNOWN_WITHIN_MS;
    let fates: readonly Fate[] = [];
    do {
      fates = await this.#look().catch(() => fates); // the controller may be away for a moment
      if (fates.every(({ servingAt, seal }) => servingAt !== null && seal !== null)) break;
      await this.#clock.sleep(POLL_MS, signal);
    } while (this.#clock.monotonic() < end);
    return this.#told(fates);
  }

  async #look(): Promise<readonly Fate[]> {
    const instances = await this.#instances();
    for (const { id, phase, phaseSince } of instances)
      if (phase === "serving" && !this.#servingSince.has(id)) this.#servingSince.set(id, Date.parse(phaseSince));
    for (const { reasons } of await this.#pools())
      for (const { code, subject, sentence } of reasons)
        if (code === "evacuation_unsavable") this.#unsavable.set(subject, `${subject}: ${sentence}`);
    return fatesOf(this.#evacuees, instances, this.#servingSince);
  }

  async #told(fates: readonly Fate[]): Promise<FollowedStorm> {
    const after = requestsOf(await this.#pools());
    const before = this.#before ?? after;
    return {
      classes: Object.fromEntries(
        PRIORITIES.map((priority) => [priority, outcomeOf(fates.filter((fate) => fate.priority === priority))]),
      ) as Record<Priority, ClassOutcome>,
      order: orderOf(fates),
      unsavable: [...this.#unsavable.values()].toSorted(),
      requests: {
        accepted: after.accepted - before.accepted,
        rejected: after.rejected - before.rejected,
        cut: after.cut - before.cut,
        retried: after.retried - before.retried,
      },
      held: fates.every(({ servingAt, seal }) => servingAt !== null && seal !== null && seal !== "forced"),
    };
  }

  #instances(): Promise<readonly InstanceView[]> {
    return this.#client.list(`/v1/instances?limit=${MAX_RECORDS}`, instanceView);
  }

  #pools() {
    return this.#client.list("/v1/pools", poolView);
  }
}

function requestsOf(pools: readonly { readonly traffic: FollowedStorm["requests"] | null }[]): FollowedStorm["requests"] {
  const sum = (of: (each: FollowedStorm["requests"]) => number): number =>
    pools.reduce((total, { traffic }) => total + (traffic === null ? 0 : of(traffic)), 0);
  return {
    accepted: sum(({ accepted }) => accepted),
    rejected: sum(({ rejected }) => rejected),
    cut: sum(({ cut }) => cut),
    retried: sum(({ retried }) => retried),
  };
}
