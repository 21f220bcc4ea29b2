/** Prometheus metrics, read from the ledger when they are scraped: counting costs nothing on a request's path. */
import { Counter, Gauge, Registry } from "prom-client";
import type { GatewayCore } from "./core.ts";

export function gatewayMetrics(core: GatewayCore): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Counter({
    name: "relevo_gateway_requests_accepted_total",
    help: "Requests accepted.",
    labelNames: ["route"],
    registers,
    collect() {
      this.reset();
      for (const { route, counts } of core.ledger.routes()) this.inc({ route }, counts.accepted);
    },
  });
  new Counter({
    name: "relevo_gateway_requests_total",
    help: "Requests that ended, by outcome: completed, rejected (an explicit error of the gateway), cut (an explicit close of what was streaming).",
    labelNames: ["route", "outcome"],
    registers,
    collect() {
      this.reset();
      for (const { route, counts } of core.ledger.routes()) {
        for (const outcome of ["completed", "rejected", "cut"] as const) this.inc({ route, outcome }, counts[outcome]);
      }
    },
  });
  new Counter({
    name: "relevo_gateway_endings_total",
    help: "Requests that ended, by the code of how.",
    labelNames: ["route", "code"],
    registers,
    collect() {
      this.reset();
      for (const { route, outcomes } of core.ledger.routes()) for (const [code, count] of outcomes) this.inc({ route, code }, count);
    },
  });
  new Counter({
    name: "relevo_gateway_retried_total",
    help: "Requests that needed more than one try.",
    labelNames: ["route"],
    registers,
    collect() {
      this.reset();
      for (const { route, counts } of core.ledger.routes()) this.inc({ route }, counts.retried);
    },
  });
  new Counter({
    name: "relevo_gateway_faults_total",
    help: "Requests without a route, bytes that were no HTTP, generations that were refused.",
    labelNames: ["fault"],
    registers,
    collect() {
      this.reset();
      this.inc({ fault: "unrouted" }, core.faults.unrouted);
      this.inc({ fault: "malformed" }, core.faults.malformed);
      this.inc({ fault: "generation_refused" }, core.faults.refusedGenerations);
    },
  });
  gauges(core, registers);
  return registry;
}

function gauges(core: GatewayCore, registers: Registry[]): void {
  new Gauge({
    name: "relevo_gateway_requests",
    help: "Requests that have not ended, by state: inFlight, queued.",
    labelNames: ["route", "state"],
    registers,
    collect() {
      this.reset();
      for (const { route, counts } of core.ledger.routes()) {
        this.set({ route, state: "inFlight" }, counts.inFlight);
        this.set({ route, state: "queued" }, counts.queued);
      }
    },
  });
  new Gauge({
    name: "relevo_gateway_member_obligations",
    help: "What an instance holds: requests (upgraded connections included), upgraded, sessions.",
    labelNames: ["route", "instance", "kind"],
    registers,
    collect() {
      this.reset();
      for (const { route, members } of core.membership.routes.values()) {
        for (const { instance, load } of members) {
          for (const kind of ["requests", "upgraded", "sessions"] as const) this.inc({ route, instance, kind }, load[kind]);
        }
      }
    },
  });
  new Gauge({
    name: "relevo_gateway_member_passing",
    help: "1 when this replica's own check of the instance passes.",
    labelNames: ["route", "instance"],
    registers,
    collect() {
      this.reset();
      for (const { route, members } of core.membership.routes.values()) {
        for (const { instance, health } of members) this.set({ route, instance }, health === "passing" ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: "relevo_gateway_cut_off",
    help: "1 when the controller was silent for longer than its TTL; traffic goes on with the last generation.",
    registers,
    collect() {
      this.set(core.membership.cutOff ? 1 : 0);
    },
  });
}
