/** A gateway replica as the controller knows one: it applies what it is told, reports what it holds, and can be cut off. It carries no traffic. */
import type { Clock, Timer } from "../../src/kernel/clock.ts";
import { compareEpochs } from "../../src/kernel/epoch.ts";
import type { ControllerLine, GatewayReport, Member, RouteMembership } from "../../src/model/membership.ts";
import type { ControlPlane } from "../../src/server/control-plane.ts";
import type { ModelledInstances } from "./modelled-instances.ts";

/** Between a line's arrival and its being in force. */
const APPLY_MS = 5;
const REPORT_EVERY_MS = 250;
const NO_COUNTS = { accepted: 0, completed: 0, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 };

export interface Held {
  readonly requests: number;
  readonly sessions: number;
}

export class ModelledGateway {
  readonly id: string;
  readonly #clock: Clock;
  readonly #instances: ModelledInstances;
  readonly #routes = new Map<string, RouteMembership>();
  readonly #held = new Map<string, Held & { readonly route: string | undefined }>();
  #controlPlane: ControlPlane | undefined;
  #sequence = 0;
  #timer: Timer | undefined;

  constructor(id: string, clock: Clock, instances: ModelledInstances) {
    this.id = id;
    this.#clock = clock;
    this.#instances = instances;
  }

  async connect(controlPlane: ControlPlane): Promise<void> {
    this.#controlPlane = controlPlane;
    await controlPlane.connectGateway(this.id, (line) => this.#take(line, controlPlane));
    this.#tick();
  }

  /** Neither lines nor reports get through; what it has stays in force. */
  cutOff(): void {
    this.#controlPlane = undefined;
    this.#timer?.cancel();
  }

  /** Requests and sessions that this replica holds at an instance from now on; of one route only where that matters. */
  hold(instance: string, held: Partial<Held>, route?: string): void {
    this.#held.set(instance, { requests: 0, sessions: 0, ...held, route });
    void this.#report();
  }

  release(instance: string): void {
    this.#held.delete(instance);
    void this.#report();
  }

  /** Where it would send a new request now. */
  routed(route = "orders"): readonly string[] {
    return (this.#routes.get(route)?.members ?? []).filter(({ state }) => state === "serving").map(({ instance }) => instance);
  }

  /** How it knows this instance of the route; undefined when it does not. */
  member(instance: string, route = "orders"): Member | undefined {
    return this.#routes.get(route)?.members.find((member) => member.instance === instance);
  }

  #take(line: ControllerLine, from: ControlPlane): boolean {
    if (this.#controlPlane !== from) return true; // lost on the way: nobody tells the sender
    if (line.type === "membership") this.#clock.after(APPLY_MS, () => this.#apply(line.routes, line.complete));
    return true;
  }

  #apply(routes: readonly RouteMembership[], isComplete: boolean): void {
    if (this.#controlPlane === undefined) return;
    const named = new Set(routes.map(({ route }) => route));
    if (isComplete) for (const route of this.#routes.keys()) if (!named.has(route)) this.#routes.delete(route);
    for (const route of routes) {
      const applied = this.#routes.get(route.route)?.generation;
      if (applied !== undefined && compareEpochs(route.generation, applied) < 0) continue;
      this.#routes.set(route.route, route);
      for (const { instance, state } of route.members) if (state === "sealed" || state === "fenced") this.#held.delete(instance);
    }
    void this.#report();
  }

  #tick(): void {
    void this.#report();
    this.#timer = this.#clock.after(REPORT_EVERY_MS, () => this.#tick());
  }

  async #report(): Promise<void> {
    const controlPlane = this.#controlPlane;
    if (controlPlane === undefined) return;
    const routes = [...this.#routes.values()].map(({ route, generation, members }) => ({
      route,
      applied: generation,
      members: members.map((member) => this.#memberReport(member, route)),
      counts: NO_COUNTS,
    }));
    const report: GatewayReport = { replica: this.id, sequence: ++this.#sequence, routes };
    await controlPlane.receiveReport(report);
  }

  #memberReport({ instance, incarnation, host }: Member, route: string): GatewayReport["routes"][number]["members"][number] {
    const held = this.#held.get(instance);
    const { requests, sessions } = held && (held.route ?? route) === route ? held : { requests: 0, sessions: 0 };
    const healthReason = this.#instances.troubleAt(host);
    return {
      instance,
      incarnation,
      requests,
      upgraded: 0,
      sessions,
      health: healthReason === null ? "passing" : "failing",
      healthReason,
    };
  }
}
