/** What may be done to a pool, each with a crash at any call of the controller meanwhile. Together they run every kind of step. */
import type { CrashCase } from "../../src/sim/crash-points.ts";
import { poolDocument, type PoolOptions, type Scenario, scenarioPool } from "../../src/sim/scenario.ts";

function scenario(options: Partial<PoolOptions> = {}): Scenario {
  return {
    nodes: 4,
    zones: ["zone-a", "zone-b"],
    gateways: 2,
    bootMs: [100, 300],
    leadMs: 20_000,
    pools: [scenarioPool(poolDocument({ name: "orders", desired: 2, surge: 1, draining: 1, startsOff: false, ...options }))],
  };
}

export const CRASH_CASES: readonly CrashCase[] = [
  { name: "create", scenario: scenario({ standby: 1 }), deeds: ["start"], showsAfterMs: 1_000, requestMs: 0 },
  {
    name: "replace",
    scenario: scenario(),
    deeds: [{ kind: "node_drift", pick: 0, clearsAfterMs: null }],
    showsAfterMs: 1_000,
    requestMs: 3_000,
  },
  {
    name: "drain",
    scenario: scenario({ leaseTtlS: 5 }),
    deeds: [{ kind: "drain" }],
    showsAfterMs: 1_000,
    requestMs: 3_000,
  },
  {
    name: "close",
    scenario: scenario(),
    deeds: [{ kind: "gateway_silent", pick: 0, forMs: 12_000 }, { kind: "drain" }],
    showsAfterMs: 1_000,
    requestMs: 0,
  },
  {
    name: "evacuate",
    scenario: scenario({ standby: 1 }),
    deeds: [{ kind: "spot_notice", pick: 0, delayMs: 0, copies: 2 }],
    showsAfterMs: 25_000,
    requestMs: 3_000,
  },
  {
    name: "fence",
    scenario: scenario({ leaseTtlS: 3 }),
    deeds: [{ kind: "writer_isolated", pick: 0, forMs: 60_000, defies: true }],
    showsAfterMs: 15_000,
    requestMs: 120_000,
  },
  {
    name: "uncordon",
    scenario: scenario(),
    before: [{ kind: "notice_cancelled", pick: 0, afterMs: 5_000 }],
    deeds: [{ kind: "uncordon" }],
    showsAfterMs: 1_000,
    requestMs: 0,
  },
  { name: "recover", scenario: scenario(), deeds: [{ kind: "recover" }], showsAfterMs: 4_000, requestMs: 0 },
];
