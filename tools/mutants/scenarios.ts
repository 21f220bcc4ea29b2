/** Worlds in which mutants show whose rule the drawn ones seldom bring to its limit. The names of what is scarce. */
import { type PoolOptions, poolDocument, type Scenario, scenarioPool } from "../../src/sim/scenario.ts";

export type ScenarioName = "spacious" | "no_room" | "no_nodes" | "hasty" | "leased" | "slow_successors" | "blind" | "three_controllers";

/** All that a spec of a pool may have otherwise. */
interface Other {
  readonly size?: object;
  readonly disruption?: { readonly candidates?: object };
}

function pool(options: Partial<PoolOptions>, other: Other = {}) {
  const document = poolDocument({ name: "orders", desired: 3, surge: 2, draining: 2, startsOff: false, ...options });
  const spec = document["spec"] as Required<Other>;
  const { candidates, ...disruption } = spec.disruption;
  return scenarioPool({
    ...document,
    spec: {
      ...spec,
      size: { ...spec.size, ...other.size },
      disruption: { ...disruption, candidates: { ...candidates, ...other.disruption?.candidates } },
    },
  });
}

const WORLD: Scenario = {
  nodes: 5,
  zones: ["zone-a", "zone-b"],
  gateways: 2,
  bootMs: [100, 400],
  leadMs: 30_000,
  pools: [pool({})],
};

export const SCENARIOS: { readonly [K in ScenarioName]: () => Scenario } = {
  /** Several drains and several candidates at once. */
  spacious: () => WORLD,
  /** One more than are desired, and one that drains. */
  no_room: () => ({ ...WORLD, pools: [pool({ surge: 1, draining: 1 }, { size: { max: 3 } })] }),
  /** Each instance needs a node of its own, and none is free. */
  no_nodes: () => ({ ...WORLD, nodes: 3, pools: [pool({ cpu: "2500m" })] }),
  /** A candidate is given up after three seconds. */
  hasty: () => ({ ...WORLD, pools: [pool({}, { disruption: { candidates: { readyWithin: "3s" } } })] }),
  /** Each place has one writer. */
  leased: () => ({ ...WORLD, pools: [pool({ leaseTtlS: 4, surge: 3 })] }),
  /** The same; what was begun long before may become ready just when something else is known. */
  slow_successors: () => ({ ...WORLD, bootMs: [4_000, 9_000], pools: [pool({ leaseTtlS: 4, surge: 3 })] }),
  /** So many that it cannot be chance when all are silent. */
  blind: () => ({ ...WORLD, pools: [pool({ desired: 5 })] }),
  /** Which share three pools. */
  three_controllers: () => ({ ...WORLD, replicas: 3, pools: ["orders", "quotes", "reports"].map((name) => pool({ name, desired: 1 })) }),
};
