/** What it costs to look at a hundred clusters, as the controller does: its own monitor of health over the driver. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { InstanceTarget } from "../../src/drivers/port.ts";
import { TrinoDriver } from "../../src/drivers/trino/trino-driver.ts";
import { stayAlive, systemClock } from "../../src/kernel/system.ts";
import { HealthMonitor, type Watched } from "../../src/observe/health.ts";
import { loadAverage, say } from "../fleet/machine.ts";
import type { Coordinators, Order } from "./coordinators.ts";

const EVERY_MS = 1_000;
const WARM_UP_MS = 5_000;
const MEASURE_MS = 20_000;
const DRAINING = 10;
const TARGET_CPU_PERCENT = 5;
/** Of the recorded coordinator. */
const BOOT_ID = "c/54gri";

export async function measureDriver() {
  const awake = stayAlive();
  const peer = fork(join(import.meta.dirname, "coordinators.ts"), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  try {
    const [{ ports }] = (await once(peer, "message")) as [Coordinators];
    const observed = await look(ports, 0);
    const draining = await look(ports, DRAINING);
    peer.send({ filters: false } satisfies Order);
    const unfiltered = await look(ports, 0);
    const ok =
      observed.cpuPercent <= TARGET_CPU_PERCENT && [observed, draining, unfiltered].every(({ passing }) => passing === ports.length);
    return { clusters: ports.length, everyMs: EVERY_MS, observed, draining, unfiltered, target: { cpuPercent: TARGET_CPU_PERCENT }, ok };
  } finally {
    peer.disconnect();
    awake();
  }
}

async function look(ports: readonly number[], draining: number) {
  const driver = new TrinoDriver({ clock: systemClock });
  const monitor = new HealthMonitor(driver, systemClock, () => undefined);
  const watched = ports.map((port, index): Watched => {
    return { instance: `trino-${index}`, incarnation: 1, everyMs: EVERY_MS, isDraining: index < draining, target: targetAt(port) };
  });
  monitor.follow(new Set(), watched);
  await systemClock.sleep(WARM_UP_MS);
  const from = process.cpuUsage();
  const at = systemClock.monotonic();
  await systemClock.sleep(MEASURE_MS);
  const { user, system } = process.cpuUsage(from);
  // Microseconds of CPU by milliseconds: tenths of a percent.
  const cpuPercent = Math.round((user + system) / (systemClock.monotonic() - at)) / 10;
  const passing = watched.filter(({ instance }) => monitor.healthOf(instance, 1).state === "passing").length;
  monitor.stop();
  await driver.destroy();
  say("trino", `driver: ${cpuPercent} % of a core, ${draining} of ${ports.length} draining`);
  return { cpuPercent, draining, passing, loadAverage: loadAverage() };
}

function targetAt(port: number): InstanceTarget {
  return {
    host: "127.0.0.1",
    port,
    bootId: BOOT_ID,
    protocol: "trino/v1",
    healthPath: "/v1/info/coordinator",
    trino: { user: "relevo", workers: 2 },
  };
}
