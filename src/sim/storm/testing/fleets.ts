/** Small fleets for tests: one class at one site that goes, standby at another. */
import { fleetSchema, type Fleet } from "../fleet.ts";

interface FleetOptions {
  readonly classes?: readonly { readonly name: string; readonly priority: string; readonly count: number }[];
  readonly supplies?: readonly object[];
  readonly waves?: readonly object[];
  readonly notices?: object;
  readonly lands?: number;
  readonly burst?: number;
  readonly lead?: string;
  readonly gatewayQueue?: number;
  readonly bandwidth?: string;
  readonly requestsPerSecond?: number;
  readonly measureFor?: string;
  readonly warmUp?: string;
}

export function aFleet(options: FleetOptions = {}): Fleet {
  return fleetSchema.parse(written(options));
}

/** As a file would have it. */
export function written(options: FleetOptions = {}): object {
  const {
    classes = [{ name: "quotes", priority: "critical", count: 10 }],
    lands = 5,
    burst = 5,
    lead = "120s",
    bandwidth = "12.5G",
  } = options;
  return {
    sites: [site("home", "2ms", 1, 1, lead, bandwidth), site("away", "12ms", lands, burst, "120s", bandwidth)],
    supplies: options.supplies ?? classes.map(({ name, count }) => standby(name, count)),
    classes: classes.map(({ name, priority, count }) => ({
      name,
      priority,
      count,
      runsOn: { site: "home", zones: ["a"], type: "big" },
      state: { size: "50G", changes: "20M", bandwidth: "1.25G" },
      boot: "3s",
      warmUp: options.warmUp ?? "4s",
      requests: { perSecond: options.requestsPerSecond ?? 50, inFlight: "4ms" },
    })),
    notices: { waves: options.waves ?? [{ at: "0s", over: "2s", share: 1 }], ...options.notices },
    gatewayQueue: options.gatewayQueue ?? 10_000,
    measureFor: options.measureFor ?? "4m",
  };
}

export function standby(of: string, count: number, more: object = {}): object {
  return { site: "away", zone: "z", type: "big", kind: "standby", class: of, count, ...more };
}

export function onDemand(count: number, more: object = {}): object {
  return { site: "away", zone: "y", type: "big", kind: "on_demand", count, ...more };
}

function site(name: string, latency: string, lands: number, burst: number, noticeLead: string, bandwidth: string): object {
  return {
    name,
    provider: "aws",
    latency,
    noticeLead,
    bandwidth,
    lands: { perSecond: lands },
    configured: { perSecond: lands, burst },
  };
}
