/** A prober that loses its network sees five hundred deaths at once, and none of them is one (D12). Level: simulated. */
import { expect, test } from "vitest";
import { poolDocument, type Scenario, scenarioPool } from "../../src/sim/scenario.ts";
import { simulate } from "./seeds.ts";

const INSTANCES = 500;
const SCENARIO: Scenario = {
  nodes: 40,
  zones: ["zone-a", "zone-b", "zone-c"],
  gateways: 2,
  bootMs: [500, 2_000],
  leadMs: 40_000,
  pools: [scenarioPool(poolDocument({ name: "orders", desired: INSTANCES, surge: 50, draining: 50, startsOff: false }))],
};

test("500 instances whose checks all fail at once, and nobody else's: the brake holds, none is condemned, and none is replaced (D12)", async () => {
  const made = new Set<string>();
  const condemned = new Set<string>();
  let mostSuspect = 0;
  const { violations, convergedMs, faultCounts, pools } = await simulate(1, {
    scenario: SCENARIO,
    faults: [{ atMs: 2_000, fault: { kind: "prober_cut", forMs: 45_000 } }],
    faultsForMs: 50_000,
    told: (event) => {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind === "create_instance") made.add(change.instance.id);
        if (change.kind === "record_evidence") condemned.add(change.evidence.instance);
        if (change.kind !== "set_reasons") continue;
        for (const { reason } of change.reasons)
          if (reason.code === "brake") mostSuspect = Math.max(mostSuspect, Number(reason.params["suspect"]));
      }
    },
  });
  expect([violations, pools[0]?.losses]).toEqual([[], []]);
  // Of calls: every one was asked, and more than once.
  expect(faultCounts.get("prober_cut")).toBeGreaterThan(2 * INSTANCES);
  expect(convergedMs).not.toBeNull();
  expect(mostSuspect).toBeGreaterThan(INSTANCES / 2);
  expect([made.size, condemned.size]).toEqual([INSTANCES, 0]);
}, 300_000);
