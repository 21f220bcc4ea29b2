import { afterEach, beforeEach, expect, test } from "vitest";
import { type AdminServer, startAdmin } from "./admin.ts";
import { testCluster, type TestCluster } from "./testing/cluster.ts";

let cluster: TestCluster;
let admin: AdminServer;

beforeEach(async () => {
  cluster = await testCluster({ provisioner: { vanishAfterMs: 10_000 } });
  admin = await startAdmin({ provisioner: cluster.provisioner, info: { uid: "u", apiUrl: "http://127.0.0.1:1", pid: 1 } });
});

afterEach(async () => {
  await admin.close();
  await cluster.close();
});

async function ask(
  method: string,
  path: string,
  body?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const response = await fetch(`${admin.url}/embedded/v1${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test("it says what it is, and lists the nodes", async () => {
  expect(await ask("GET", "")).toEqual({ status: 200, body: { uid: "u", apiUrl: "http://127.0.0.1:1", pid: 1 } });
  const { body } = await ask("GET", "/nodes");
  expect((body["nodes"] as readonly Record<string, unknown>[])[0]).toEqual({
    name: "node-a1",
    claim: expect.stringMatching(/^spot-/),
    instanceId: expect.stringMatching(/^i-[0-9a-f]{17}$/),
    zone: "zone-a",
    isReady: true,
    isUnschedulable: false,
    isDrifted: false,
    isDeleting: false,
    pods: 0,
  });
});

test("a node drifts, is interrupted, dies and returns as asked", async () => {
  expect(await ask("POST", "/nodes/node-a1/drift")).toEqual({ status: 200, body: { nodeName: "node-a1", drifted: true } });
  expect(cluster.provisioner.nodes()[0]?.isDrifted).toBe(true);
  expect(await ask("POST", "/nodes/node-a1/drift", '{"clear":true}')).toEqual({
    status: 200,
    body: { nodeName: "node-a1", drifted: false },
  });

  const interrupted = await ask("POST", "/nodes/node-b1/interrupt", '{"deadlineMs":20000}');
  expect(interrupted).toMatchObject({
    status: 200,
    body: { nodeName: "node-b1", zone: "zone-b", account: "000000000000", region: "local-1", deadline: cluster.clock.now() + 20_000 },
  });

  expect((await ask("POST", "/nodes/node-a2/return")).body["code"]).toBe("node_not_lost");
  expect((await ask("POST", "/nodes/node-a2/kill")).status).toBe(200);
  expect(cluster.fleet.runs("node-a2")).toBe(false);
  expect((await ask("POST", "/nodes/node-a2/return", '{"sameUid":true}')).status).toBe(200);
  await cluster.until("it runs again", () => cluster.fleet.runs("node-a2"));
});

test.each([
  ["an unknown node", "POST", "/nodes/node-z9/kill", undefined, 404, "node_unknown"],
  ["an unknown verb", "POST", "/nodes/node-a1/explode", undefined, 404, "path_unknown"],
  ["a wrong method", "GET", "/nodes/node-a1/kill", undefined, 404, "path_unknown"],
  ["a body that is no JSON", "POST", "/nodes/node-a1/interrupt", "{", 400, "body_not_json"],
  ["a name that is no text", "POST", "/nodes/%ff/kill", undefined, 404, "path_unknown"],
  ["a negative deadline", "POST", "/nodes/node-a1/interrupt", '{"deadlineMs":-1}', 400, "body_invalid"],
  ["a misspelt field", "POST", "/nodes/node-a1/interrupt", '{"deadline":1}', 400, "body_invalid"],
  ["a body that is too large", "POST", "/nodes/node-a1/kill", "x".repeat(20_000), 413, "body_too_large"],
])("%s is refused and changes nothing", async (_name, method, path, body, status, code) => {
  const answer = await ask(method, path, body);

  expect([answer.status, answer.body["code"]]).toEqual([status, code]);
  expect(["node-a1", "node-a2", "node-b1"].map((name) => cluster.fleet.runs(name))).toEqual([true, true, true]);
});

test("web pages are refused", async () => {
  expect(await ask("POST", "/nodes/node-a1/kill", undefined, { origin: "https://example.org" })).toMatchObject({
    status: 403,
    body: { code: "embedded_admin_refused" },
  });
  expect(cluster.fleet.runs("node-a1")).toBe(true);
});
