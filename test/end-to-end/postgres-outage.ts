/**
 * The store is away in the middle of a replacement: what serves goes on serving, nothing is admitted, sealed or deleted, and when the store is back the
 * replacement ends. Level: real processes.
 */
import { expect } from "vitest";
import { systemClock as clock } from "../../src/kernel/system.ts";
import { PostgresCluster } from "../postgres/cluster.ts";
import { type Fleet, startFleet } from "./fleet.ts";

export async function outage(awayMs: number): Promise<void> {
  const postgres = await PostgresCluster.start();
  let fleet: Fleet | undefined;
  try {
    fleet = await startFleet({ desired: 2, nodes: 3, store: postgres.url("fleet", "&connect_timeout_ms=500") });
    await throughOutage(fleet, postgres, awayMs);
  } finally {
    await fleet?.close();
    await postgres.stop();
  }
}

async function throughOutage(fleet: Fleet, postgres: PostgresCluster, awayMs: number): Promise<void> {
  const { until, serving } = fleet;
  const gateway = await fleet.gateway();
  await until("both serve", async () => (await serving()).length === 2);
  const [victim] = await serving();
  const former = (await serving()).map(({ id }) => id);
  await fleet.cluster.provisioner.drift(victim?.incarnation.nodeName ?? "");
  await until("a replacement is begun", async () => (await fleet.controlPlane.listInstances({ limit: 50 })).length === 3);

  await postgres.end("immediate");
  let answered = 0;
  for (const end = clock.monotonic() + awayMs; clock.monotonic() < end; answered++) {
    expect(await order(gateway.url, `away-${answered}`)).toBe(201);
    await clock.sleep(100);
  }
  expect(answered).toBeGreaterThan(awayMs / 1_000);
  const members = gateway.report().routes[0]?.members.map(({ instance }) => instance) ?? [];
  expect(former.filter((id) => !members.includes(id))).toEqual([]);

  await postgres.launch();
  await until("the replacement has ended", async () => (await fleet.instance(victim?.id ?? "")).phase === "deleted", 60_000);
  await until("two serve", async () => (await serving()).length === 2);
  expect((await serving()).map(({ id }) => id)).not.toContain(victim?.id);
  expect(await order(gateway.url, "last")).toBe(201);
  // Each step was recorded once, and none is left in the air.
  expect((await fleet.controlPlane.listSteps({ limit: 1_000 })).filter(({ state }) => state === "unknown" || state === "held")).toEqual([]);
}

async function order(url: string, id: string): Promise<number> {
  const body = JSON.stringify({ id });
  const headers = { "idempotency-key": id, "content-type": "application/json" };
  return (await fetch(`${url}/orders`, { method: "POST", headers, body })).status;
}
