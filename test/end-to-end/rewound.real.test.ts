/**
 * Yesterday's backup of the SQLite file is put in the place of today's: the pool is held and its clients are served, and `store recover` goes on with it.
 * Level: real processes.
 */
import { copyFile } from "node:fs/promises";
import { afterEach, expect, test } from "vitest";
import { DEPLOYMENTS } from "../../src/kube/resources.ts";
import { httpKubeApi } from "../../src/kube/http-api.ts";
import { LABELS } from "../../src/model/marks.ts";
import { type Fleet, startFleet } from "./fleet.ts";

let fleet: Fleet;
afterEach(() => fleet.close());

test("a file that was restored from a backup is seen by the gateway, held, recovered and converged", async () => {
  fleet = await startFleet({ desired: 2, nodes: 3 });
  const { until, serving } = fleet;
  const gateway = await fleet.gateway();
  await until("both serve", async () => (await serving()).length === 2);
  await fleet.restartController((path) => copyFile(path, `${path}.backup`));
  const [victim, staying] = await serving();
  await fleet.cluster.provisioner.drift(victim?.incarnation.nodeName ?? "");
  await until("it was replaced", async () => (await fleet.instance(victim?.id ?? "")).phase === "deleted");
  const current = (await serving()).find(({ id }) => id !== staying?.id)?.id ?? "";

  await fleet.restartController((path) => copyFile(`${path}.backup`, path));
  const rewound = async () => (await fleet.controlPlane.checkStore()).pools[0]?.rewound ?? null;
  await until("it is held", async () => (await rewound()) !== null);
  expect(await rewound()).toMatchObject({ witness: expect.stringMatching(/^gateway /), what: "generation" });

  // Nothing of it is done: the one that the file knows, and that is gone, is not even missed. Clients are served by those that are there.
  const passes = async () => (await fleet.controlPlane.listSteps({ limit: 100 })).length;
  const before = await passes();
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => order(gateway.url, `o-${index}`)));
  expect(answers).toEqual(Array(20).fill(201));
  expect(
    gateway
      .report()
      .routes[0]?.members.map(({ instance }) => instance)
      .toSorted(),
  ).toEqual([staying?.id, current].toSorted());
  expect([await passes(), (await serving()).map(({ id }) => id).toSorted()]).toEqual([before, [victim?.id, staying?.id].toSorted()]);

  await fleet.controlPlane.recoverStore({ why: "yesterday's backup was restored", by: "alice", force: false });
  await until("the pool is whole", async () => {
    const ids = (await serving()).map(({ id }) => id);
    return ids.length === 2 && !ids.includes(victim?.id ?? "");
  });
  await until("what the file did not know is gone", async () => !(await deployments()).includes(current));

  const whole = (await serving()).map(({ id }) => id).toSorted();
  expect(whole).toContain(staying?.id);
  expect(await deployments()).toEqual(whole);
  expect(await fleet.controlPlane.checkStore()).toMatchObject({ era: 1, pools: [{ rewound: null, strangers: [] }] });
  await until("the gateway has the new generation", () => gateway.report().routes[0]?.applied.startsWith("1.") === true);
  expect(await order(gateway.url, "o-last")).toBe(201);
});

async function order(url: string, id: string): Promise<number> {
  const body = JSON.stringify({ id });
  return (await fetch(`${url}/orders`, { method: "POST", headers: { "idempotency-key": id, "content-type": "application/json" }, body }))
    .status;
}

async function deployments(): Promise<readonly string[]> {
  const kube = httpKubeApi({ baseUrl: fleet.cluster.url });
  const { items } = await kube.list(DEPLOYMENTS, { namespace: "default" });
  await kube.close();
  return items.flatMap(({ metadata }) => metadata.labels?.[LABELS.instance] ?? []).toSorted();
}
