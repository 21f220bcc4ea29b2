/**
 * Who may get traffic, as this replica has applied it: a state machine without I/O or timers.
 *
 * 1. A route's generation never goes backwards within what was applied; an older one is refused and said (the store was rewound).
 * 2. A replica serves nothing of a route before its first generation, and nothing to a member before the member's first passed check (I11).
 * 3. Cut off from the controller it goes on with what it has: silence changes no member.
 * 4. A member is (instance, incarnation, address): a new process is a new member, and what the old one held is void.
 * 5. Several controllers may speak: the newest generation of a route counts, whoever says it, and a route goes only when no controller that is connected
 *    publishes it or names it.
 * 6. Fenced or sealed is for ever, and a member's `minAccepted` never falls (I2): what an answer must carry to be passed on.
 */
import { compareEpochs, type Epoch } from "../kernel/epoch.ts";
import type { ControllerLine, Member, RouteMembership, RoutePolicy } from "../model/membership.ts";
import { type AcceptedWriter, newerWriter, sameWriter } from "./stale.ts";
import { LIMITS } from "./limits.ts";

export type MemberHealth = "unknown" | "passing" | "failing";

/** What a member holds right now; only the ledger changes it. */
export interface MemberLoad {
  requests: number;
  upgraded: number;
  sessions: number;
}

export interface MemberState {
  readonly route: string;
  readonly instance: string;
  readonly incarnation: number;
  readonly host: string;
  readonly port: number;
  readonly load: MemberLoad;
  bootId: string | null;
  state: Member["state"];
  /** ms since the epoch. */
  deadline: number | null;
  /** Null: nothing is compared. */
  writer: AcceptedWriter | null;
  health: MemberHealth;
  healthReason: string | null;
  /** Time-outs of checks in a row. */
  timeouts: number;
  /** Monotonic ms; a check that began before it proves nothing. */
  troubleAt: number;
  /** Monotonic ms of the first passed check when it still ramps up; null when it gets its full share. */
  slowStartFrom: number | null;
  /** Admitted after this replica's first generation of the route: it starts slowly. */
  readonly startsSlowly: boolean;
  /** No longer in the membership: nothing may be sent to it. */
  gone: boolean;
}

export interface RouteState {
  readonly route: string;
  /** Whose generation it is; null: the controller did not say it. */
  pool: string | null;
  generation: Epoch;
  policy: RoutePolicy;
  members: MemberState[];
  /** Where the next choice among equals begins. */
  turn: number;
}

/** What was applied last of a route that is gone. */
export interface EndedRoute {
  readonly route: string;
  readonly pool: string | null;
  readonly generation: Epoch;
}

interface MemberName {
  readonly route: string;
  readonly instance: string;
  readonly incarnation: number;
}

/** `at` is monotonic ms. */
export type MembershipEvent =
  /** `source`: which controller says it; absent where there is one. */
  | { readonly type: "line"; readonly at: number; readonly line: ControllerLine; readonly source?: string }
  /** The stream of this controller is over: what it said goes on to be applied, and it has no say in what is gone. */
  | { readonly type: "closed"; readonly source: string }
  | { readonly type: "tick"; readonly at: number }
  /** A health check that began at `startedAt` ended; `failure` null when it passed. */
  | ({ readonly type: "checked"; readonly at: number; readonly startedAt: number; readonly failure: string | null } & MemberName)
  /** A request showed that the member does not answer: nothing new goes there until its check passes again. */
  | ({ readonly type: "trouble"; readonly at: number; readonly reason: string } & MemberName);

export type RefusalReason = "older_generation" | "same_generation_other_members" | "removed_while_serving";

export type GoneReason = "sealed" | "fenced" | "removed" | "replaced";

export type MembershipEffect =
  | { readonly type: "applied"; readonly route: RouteState; readonly generation: Epoch }
  | {
      readonly type: "refused";
      readonly route: string;
      readonly why: RefusalReason;
      readonly offered: Epoch | null;
      readonly applied: Epoch;
    }
  | { readonly type: "route_removed"; readonly route: RouteState }
  | { readonly type: "member_added"; readonly route: RouteState; readonly member: MemberState }
  | { readonly type: "member_draining"; readonly route: RouteState; readonly member: MemberState }
  | { readonly type: "member_gone"; readonly member: MemberState; readonly why: GoneReason }
  /** Answers that have begun under an older epoch are stale from now on. */
  | { readonly type: "writer_raised"; readonly member: MemberState; readonly minAccepted: Epoch }
  | { readonly type: "health_changed"; readonly member: MemberState }
  | { readonly type: "check_now"; readonly member: MemberState }
  /** Something may be served that could not be before. */
  | { readonly type: "capacity"; readonly route: RouteState }
  | { readonly type: "cut_off"; readonly silentMs: number }
  | { readonly type: "connected" };

export class Membership {
  readonly routes = new Map<string, RouteState>();
  /** By controller that is connected: the routes that it published or named since its stream began, or since it last said all. */
  readonly #known = new Map<string, Set<string>>();
  /** Routes that are gone, oldest first. */
  readonly #ended = new Map<string, EndedRoute>();
  /** Of each list of members, which is never changed but replaced. */
  readonly #byName = new WeakMap<readonly MemberState[], ReadonlyMap<string, MemberState>>();
  #heardAt: number;
  #ttlMs = Number.POSITIVE_INFINITY;
  #cutOff = false;

  constructor(at: number) {
    this.#heardAt = at;
  }

  /** True after a TTL of silence; traffic goes on with what was applied. */
  get cutOff(): boolean {
    return this.#cutOff;
  }

  /** True once a controller has said who may get traffic, be it nobody. */
  get isInformed(): boolean {
    return Number.isFinite(this.#ttlMs);
  }

  /** Routes that are gone, as far as they are remembered. */
  ended(): Iterable<EndedRoute> {
    return this.#ended.values();
  }

  step(event: MembershipEvent): readonly MembershipEffect[] {
    const effects: MembershipEffect[] = [];
    switch (event.type) {
      case "line":
        this.#heard(event.at, effects);
        if (event.line.type === "membership") this.#applyLine(event.line, event.source ?? "", effects);
        break;
      case "closed":
        this.#known.delete(event.source);
        break;
      case "tick":
        if (!this.#cutOff && event.at - this.#heardAt > this.#ttlMs) {
          this.#cutOff = true;
          effects.push({ type: "cut_off", silentMs: event.at - this.#heardAt });
        }
        break;
      case "checked":
        this.#checked(event, effects);
        break;
      case "trouble":
        this.#trouble(event, effects);
        break;
      default:
        event satisfies never;
    }
    return effects;
  }

  /** The member of that name, also when it is draining or sealed. */
  find(route: string, instance: string, incarnation: number): MemberState | undefined {
    const members = this.routes.get(route)?.members ?? [];
    let byName = this.#byName.get(members);
    if (byName === undefined) {
      byName = membersByName(members);
      this.#byName.set(members, byName);
    }
    return byName.get(nameOf(instance, incarnation));
  }

  #heard(at: number, effects: MembershipEffect[]): void {
    this.#heardAt = at;
    if (!this.#cutOff) return;
    this.#cutOff = false;
    effects.push({ type: "connected" });
  }

  #applyLine(line: Extract<ControllerLine, { type: "membership" }>, source: string, effects: MembershipEffect[]): void {
    this.#ttlMs = line.ttlMs;
    for (const offered of line.routes) this.#applyRoute(offered, effects);
    const said = [...line.routes.map((offered) => offered.route), ...(line.names ?? [])];
    const before = this.#known.get(source) ?? [];
    this.#known.set(source, new Set(line.complete ? said : [...before, ...said]));
    if (!line.complete) return;
    const known = [...this.#known.values()];
    for (const route of [...this.routes.values()]) if (!known.some((routes) => routes.has(route.route))) this.#removeRoute(route, effects);
  }

  #applyRoute(offered: RouteMembership, effects: MembershipEffect[]): void {
    const known = this.routes.get(offered.route);
    const applied = known?.generation ?? this.#ended.get(offered.route)?.generation;
    const order = applied === undefined ? 1 : compareEpochs(offered.generation, applied);
    const refuse = (why: RefusalReason, than: Epoch) =>
      effects.push({ type: "refused", route: offered.route, why, offered: offered.generation, applied: than });
    if (applied !== undefined && order < 0) {
      refuse("older_generation", applied);
      return;
    }
    if (known !== undefined && order === 0) {
      if (!sameMembers(known, offered.members)) refuse("same_generation_other_members", known.generation);
      else this.#applyPolicy(known, offered, effects);
      return;
    }
    const route = known ?? this.#newRoute(offered);
    route.pool = offered.pool ?? null;
    route.generation = offered.generation;
    route.policy = offered.policy;
    this.#applyMembers(route, offered.members, known === undefined, effects);
    effects.push({ type: "applied", route, generation: route.generation }, { type: "capacity", route });
  }

  #newRoute(offered: RouteMembership): RouteState {
    const route: RouteState = {
      route: offered.route,
      pool: offered.pool ?? null,
      generation: offered.generation,
      policy: offered.policy,
      members: [],
      turn: 0,
    };
    this.routes.set(offered.route, route);
    this.#ended.delete(offered.route);
    return route;
  }

  #applyPolicy(route: RouteState, { policy, pool }: RouteMembership, effects: MembershipEffect[]): void {
    route.policy = policy;
    if (pool !== undefined) route.pool = pool;
    effects.push({ type: "capacity", route });
  }

  #applyMembers(route: RouteState, offered: readonly Member[], first: boolean, effects: MembershipEffect[]): void {
    const before = route.members;
    const known = membersByName(before);
    route.members = offered.map((member) => {
      const old = known.get(nameOf(member.instance, member.incarnation));
      return old === undefined || !isSame(old, member)
        ? this.#addMember(route, member, first, effects)
        : this.#changeMember(route, old, member, effects);
    });
    const [kept, instances] = [new Set(route.members), new Set(offered.map(({ instance }) => instance))];
    for (const old of before) if (!kept.has(old)) this.#loseMember(old, instances.has(old.instance) ? "replaced" : "removed", effects);
  }

  #addMember(route: RouteState, offered: Member, first: boolean, effects: MembershipEffect[]): MemberState {
    const member: MemberState = {
      route: route.route,
      instance: offered.instance,
      incarnation: offered.incarnation,
      host: offered.host,
      port: offered.port,
      load: { requests: 0, upgraded: 0, sessions: 0 },
      bootId: offered.bootId,
      state: offered.state,
      deadline: offered.deadline,
      writer: offered.writer,
      health: "unknown",
      healthReason: null,
      timeouts: 0,
      troubleAt: Number.NEGATIVE_INFINITY,
      slowStartFrom: null,
      startsSlowly: !first,
      gone: isOut(offered.state),
    };
    if (!member.gone) effects.push({ type: "member_added", route, member });
    return member;
  }

  #changeMember(route: RouteState, member: MemberState, offered: Member, effects: MembershipEffect[]): MemberState {
    const before = member.state;
    // Such a one never comes back: what it held was cut.
    if (isOut(before)) return member;
    const deadlineMoved = member.deadline !== offered.deadline;
    member.bootId = offered.bootId;
    member.state = offered.state;
    member.deadline = offered.deadline;
    this.#raiseWriter(member, offered.writer, effects);
    if (offered.state === "sealed" || offered.state === "fenced") this.#loseMember(member, offered.state, effects);
    else if (offered.state === "draining" && (before !== "draining" || deadlineMoved))
      effects.push({ type: "member_draining", route, member });
    return member;
  }

  #raiseWriter(member: MemberState, offered: AcceptedWriter | null, effects: MembershipEffect[]): void {
    const writer = newerWriter(member.writer, offered);
    if (sameWriter(writer, member.writer)) return;
    member.writer = writer;
    if (writer !== null) effects.push({ type: "writer_raised", member, minAccepted: writer.minAccepted });
  }

  #loseMember(member: MemberState, why: GoneReason, effects: MembershipEffect[]): void {
    if (member.gone) return;
    member.gone = true;
    effects.push({ type: "member_gone", member, why });
  }

  #removeRoute(route: RouteState, effects: MembershipEffect[]): void {
    // A pool's members leave one by one before its route does. A route that vanishes while it serves is a fault of the control plane.
    if (route.members.some((member) => member.state === "serving" || member.state === "suspect")) {
      effects.push({ type: "refused", route: route.route, why: "removed_while_serving", offered: null, applied: route.generation });
      return;
    }
    this.routes.delete(route.route);
    this.#remember(route);
    for (const member of route.members) this.#loseMember(member, "removed", effects);
    effects.push({ type: "route_removed", route });
  }

  #remember({ route, pool, generation }: RouteState): void {
    this.#ended.set(route, { route, pool, generation });
    if (this.#ended.size <= LIMITS.rememberedRoutes) return;
    const oldest = this.#ended.keys().next().value;
    if (oldest !== undefined) this.#ended.delete(oldest);
  }

  #checked(event: Extract<MembershipEvent, { type: "checked" }>, effects: MembershipEffect[]): void {
    const member = this.find(event.route, event.instance, event.incarnation);
    if (member === undefined || member.gone) return;
    if (event.failure !== null) {
      member.timeouts = event.failure === "timeout" ? member.timeouts + 1 : 0;
      const patient = member.health === "passing" && event.failure === "timeout" && member.timeouts < LIMITS.healthTimeouts;
      if (!patient) setHealth(member, "failing", event.failure, effects);
      return;
    }
    if (event.startedAt < member.troubleAt) return;
    member.timeouts = 0;
    if (member.health === "unknown" && member.startsSlowly) member.slowStartFrom = event.at;
    const before = member.health;
    setHealth(member, "passing", null, effects);
    const route = this.routes.get(member.route);
    if (before !== "passing" && route !== undefined) effects.push({ type: "capacity", route });
  }

  #trouble(event: Extract<MembershipEvent, { type: "trouble" }>, effects: MembershipEffect[]): void {
    const member = this.find(event.route, event.instance, event.incarnation);
    if (member === undefined || member.gone) return;
    member.troubleAt = event.at;
    if (member.health === "passing") {
      setHealth(member, "failing", event.reason, effects);
      effects.push({ type: "check_now", member });
    }
  }
}

function isOut(state: Member["state"]): boolean {
  return state === "sealed" || state === "fenced";
}

function setHealth(member: MemberState, health: MemberHealth, reason: string | null, effects: MembershipEffect[]): void {
  if (member.health === health && member.healthReason === reason) return;
  member.health = health;
  member.healthReason = reason;
  effects.push({ type: "health_changed", member });
}

function isSame(known: MemberState, offered: Member): boolean {
  return (
    known.instance === offered.instance &&
    known.incarnation === offered.incarnation &&
    known.host === offered.host &&
    known.port === offered.port
  );
}

function sameMembers(route: RouteState, offered: readonly Member[]): boolean {
  if (route.members.length !== offered.length) return false;
  const byName = membersByName(route.members);
  return offered.every((member) => {
    const known = byName.get(nameOf(member.instance, member.incarnation));
    return (
      known !== undefined &&
      isSame(known, member) &&
      known.state === member.state &&
      known.deadline === member.deadline &&
      sameWriter(newerWriter(known.writer, member.writer), known.writer)
    );
  });
}

function membersByName(members: readonly MemberState[]): ReadonlyMap<string, MemberState> {
  return new Map(members.map((member) => [nameOf(member.instance, member.incarnation), member]));
}

function nameOf(instance: string, incarnation: number): string {
  return `${instance}.${incarnation}`;
}
