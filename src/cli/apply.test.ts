import { expect, test } from "vitest";
import { FakeControlPlane } from "../server/testing/fake-control-plane.ts";
import { runCli } from "./testing/run-cli.ts";

const ORDERS = `apiVersion: relevo.dev/v1alpha1
kind: Pool
metadata: { name: orders }
spec:
  driver: service
  size: { desired: 4, floor: 3 }
  disruption:
    mode: Act
  blueprint:
    objects:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: { name: $(relevo.instance) }
`;

function applied(text: string, fake = new FakeControlPlane()) {
  return runCli(["apply", "-f", "pool.yaml"], { fake, files: { "pool.yaml": text } });
}

async function told(text: string): Promise<string[]> {
  const fake = new FakeControlPlane();
  const { code, out, err } = await applied(text, fake);
  expect([code, out, fake.calls]).toEqual([2, "", []]);
  return err.trimEnd().split("\n");
}

test("a good file is applied as it was written", async () => {
  const fake = new FakeControlPlane();

  const run = await applied(ORDERS, fake);

  expect(run).toEqual({ code: 0, out: "pool default/orders created\n", err: "" });
  expect(fake.calls).toEqual([
    {
      call: "apply",
      with: {
        dryRun: false,
        document: {
          apiVersion: "relevo.dev/v1alpha1",
          kind: "Pool",
          metadata: { name: "orders", namespace: "default" },
          spec: {
            driver: "service",
            size: { desired: 4, floor: 3 },
            disruption: { mode: "Act" },
            blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
          },
        },
      },
    },
  ]);
});

test("a wrong value names the field, line, column, what was found and what is allowed", async () => {
  expect(await told(ORDERS.replace("desired: 4", "desired: four"))).toEqual([
    'pool.yaml:6:20: spec.size.desired is not valid; found: "four"; allowed: a whole number from 0 to 10000',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
  expect(await told(ORDERS.replace("mode: Act", "mode: act"))).toEqual([
    'pool.yaml:8:11: spec.disruption.mode is not valid; found: "act"; allowed: Off, Observe, Act; did you mean Act?',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
  expect(await told(ORDERS.replace("mode: Act", "mode: Act\n    drainFor: 10 minutes"))).toEqual([
    'pool.yaml:9:15: spec.disruption.drainFor is not valid; found: "10 minutes"; allowed: a duration such as 90s, 2m or 1h30m',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
});

test("an unknown field is told at its name, with the nearest one", async () => {
  expect(await told(ORDERS.replace("disruption:", "dsruption:"))).toEqual([
    'pool.yaml:7:3: spec.dsruption is no field; found: "dsruption"; allowed: driver, sites, size, priority, standby, serviceAccountName, blueprint, target, worker, trino, suspension, scale, service, traffic, disruption, state, deletion; did you mean disruption?',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
});

test("a missing field is told where it belongs", async () => {
  expect(await told(ORDERS.replace("  driver: service\n", ""))).toEqual([
    "pool.yaml:4:1: spec.driver is missing; allowed: service, worker, trino; add spec.driver",
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
});

test("a rule between fields is told at the field that breaks it", async () => {
  expect(await told(ORDERS.replace("floor: 3", "floor: 5"))).toEqual([
    "pool.yaml:6:30: spec.size.floor: floor 5 is above desired 4; found: 5",
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
  expect(await told(ORDERS.replace("$(relevo.instance)", "orders"))).toEqual([
    'pool.yaml:13:27: spec.blueprint.objects[0].metadata.name: must contain $(relevo.instance): two instances may not share an object; found: "orders"',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
});

test("another kind, another version, no YAML, nothing at all: each is told at its place", async () => {
  expect(await told(ORDERS.replace("kind: Pool", "kind: Poool"))).toEqual([
    'pool.yaml:2:7: kind is not one that Relevo knows; found: "Poool"; allowed: Pool; did you mean Pool?',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
  expect((await told(ORDERS.replace("kind: Pool", "kind: ConfigMap")))[0]).toBe(
    'pool.yaml:2:7: kind is not one that Relevo knows; found: "ConfigMap"; allowed: Pool; apply other objects with kubectl',
  );
  expect((await told(ORDERS.replace("v1alpha1", "v1")))[0]).toBe(
    'pool.yaml:1:13: apiVersion is not one that Relevo knows; found: "relevo.dev/v1"; allowed: relevo.dev/v1alpha1',
  );
  expect((await told("just text"))[0]).toBe("pool.yaml:1:1: kind is missing; allowed: Pool; add kind");
  expect((await told(ORDERS.replace("spec:", "spec")))[0]).toMatch(/^pool\.yaml:\d+:\d+: this is not YAML: /);
  expect((await told("# nothing\n"))[0]).toBe("pool.yaml:1:1: the file holds no document; allowed: at least one Pool");
});

test("one mistake in one of several documents keeps all of them from being applied", async () => {
  const second = ORDERS.replace("name: orders", "name: other").replace("desired: 4", "desired: four");

  expect(await told(`${ORDERS}---\n${second}`)).toEqual([
    'pool.yaml:20:20: spec.size.desired is not valid; found: "four"; allowed: a whole number from 0 to 10000',
    "relevo: One mistake: nothing was applied (document_invalid)",
  ]);
});

test("several documents are applied in their order; a pool that is not in mode Act is said to be unprotected", async () => {
  const second = ORDERS.replace("name: orders", "name: other, namespace: shop").replace("mode: Act", "mode: Off");

  const run = await applied(`${ORDERS}---\n${second}`);

  expect(run.out).toBe(
    "pool default/orders created\npool shop/other created; disruption.mode is Off: no instance is replaced before its node goes\n",
  );
});

test("with -o json mistakes and results are JSON", async () => {
  const bad = await runCli(["apply", "-o", "json", "-f", "-"], { stdin: ORDERS.replace("desired: 4", "desired: four") });
  const good = await runCli(["apply", "--dry-run", "-o", "json", "-f", "-"], { stdin: ORDERS });

  expect([bad.code, bad.out, JSON.parse(bad.err)]).toEqual([
    2,
    "",
    {
      error: {
        code: "document_invalid",
        message: "One mistake: nothing was applied.",
        problems: [
          {
            file: "stdin",
            line: 6,
            column: 20,
            field: "spec.size.desired",
            sentence: "spec.size.desired is not valid",
            found: "four",
            allowed: "a whole number from 0 to 10000",
          },
        ],
      },
    },
  ]);
  expect([good.code, JSON.parse(good.out)]).toEqual([0, { items: [{ pool: "default/orders", result: "created", dryRun: true }] }]);
});

test("a file that is not there is a usage error", async () => {
  expect(await runCli(["apply", "-f", "none.yaml"])).toEqual({
    code: 2,
    out: "",
    err: "relevo: none.yaml cannot be read (file_unreadable); found: ENOENT\n",
  });
});
