/** `relevo verify disruption` on the embedded cluster, under requests of its own. Level: real processes. */
import { afterEach, expect, test } from "vitest";
import { type Fleet, startFleet } from "./fleet.ts";
import { verifyOrders } from "./verify-orders.ts";

let fleet: Fleet;
afterEach(() => fleet.close());

const verify = (...args: readonly string[]) => verifyOrders(fleet.url, ...args);

/** Two replacements, and what is waited for around each. */
const WITHIN_MS = 90_000;

test(
  "a node's instance is replaced and no request fails; the report has its level; a client that goes elsewhere shows nothing",
  async () => {
    fleet = await startFleet();
    const gateway = await fleet.gateway();
    await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
    await fleet.until("all are protected", async () =>
      (await fleet.controlPlane.protection("default/orders")).every(({ isMarked }) => isMarked),
    );

    const read = await verify();
    expect([read.code, read.report.verdict, read.report.level, read.report.replaced]).toEqual([
      0,
      "held",
      "real processes (embedded cluster)",
      null,
    ]);
    expect(read.report.pods.map(({ owners }) => owners.map((owner) => owner.split(" ")[0]))).toEqual(
      Array(3).fill(["ReplicaSet", "Deployment"]),
    );

    const [first] = await fleet.serving();
    const replaced = await verify(
      "--replace",
      first?.incarnation.nodeName ?? "",
      "--gateway",
      `${gateway.url}/export?id=verify&seconds=1`,
      "--rate",
      "50",
      "--within",
      "60s",
    );
    expect(replaced.report.claims.filter(({ held }) => !held)).toEqual([]);
    expect([replaced.code, replaced.report.verdict, replaced.report.nothingShown]).toEqual([0, "held", []]);
    expect(replaced.report.replaced?.client.failed).toBe(0);
    expect(replaced.report.replaced?.replacements.length).toBe(1);

    // Straight to an instance: what it answers tells nothing of the route.
    const [aim, other] = await fleet.serving();
    const address = `http://${other?.incarnation.host ?? ""}:${other?.incarnation.port ?? 0}/export?id=verify&seconds=1`;
    const past = await verify("--replace", aim?.incarnation.nodeName ?? "", "--gateway", address, "--rate", "50", "--within", "60s");
    expect([past.code, past.report.verdict]).toEqual([3, "nothing shown"]);
    expect(past.report.nothingShown).toEqual([expect.stringMatching(/the client went somewhere else$/)]);
  },
  WITHIN_MS,
);
