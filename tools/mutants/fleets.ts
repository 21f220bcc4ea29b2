/** Fleets for storms in which mutants of the schedule show. */
import { type Fleet, fleetSchema } from "../../src/sim/storm/fleet.ts";

const CLASSES = [
  { name: "quotes", priority: "critical" },
  { name: "risk", priority: "standard" },
  { name: "backtests", priority: "batch" },
];

const standby = (of: string, count: number) => ({ site: "away", zone: "z", type: "big", kind: "standby", class: of, count });
const onDemand = (count: number) => ({ site: "away", zone: "y", type: "big", kind: "on_demand", count });

/** Three classes of ten at one site that goes, another site that takes two a second. */
function fleet(supplies: readonly object[], lands: number, waves: readonly object[] = [{ at: "0s", over: "2s", share: 1 }]): Fleet {
  const site = (name: string, latency: string) => ({
    name,
    provider: "aws",
    latency,
    noticeLead: "120s",
    bandwidth: "12.5G",
    lands: { perSecond: lands },
    configured: { perSecond: lands, burst: lands },
  });
  return fleetSchema.parse({
    sites: [site("home", "2ms"), site("away", "12ms")],
    supplies,
    classes: CLASSES.map(({ name, priority }) => ({
      name,
      priority,
      count: 10,
      runsOn: { site: "home", zones: ["a"], type: "big" },
      state: { size: "50G", changes: "20M", bandwidth: "1.25G" },
      boot: "3s",
      warmUp: "4s",
      requests: { perSecond: 50, inFlight: "4ms" },
    })),
    notices: { waves },
    gatewayQueue: 10_000,
    measureFor: "4m",
  });
}

export const FLEETS = {
  /** Room for all, and little absorption. */
  slow: () =>
    fleet(
      CLASSES.map(({ name }) => standby(name, 10)),
      2,
    ),
  /** One room that all classes want. */
  shared: () => fleet([onDemand(12)], 2),
  /** Few places, and as many a second as anybody likes. */
  few: () => fleet([standby("quotes", 4), onDemand(3)], 50),
  /** Half of each class goes, and a minute later the other half; what the most important ones find then is somebody else's standby. */
  expected: () =>
    fleet([standby("risk", 8)], 50, [
      { at: "0s", over: "2s", share: 0.5 },
      { at: "60s", over: "2s", share: 0.5 },
    ]),
} as const;

export type FleetName = keyof typeof FLEETS;
