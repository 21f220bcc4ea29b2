/**
 * Who may call a controller in a cluster, on a real API server with the roles of deploy/: people by RBAC, gateways and agents by tokens that are bound to their
 * pod; a freeze by ConfigMap and a dry run with the permissions that the controller has. Level: real API server, no nodes.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { FastifyInstance } from "fastify";
import { join } from "node:path";
import { applyPool } from "../../src/control/apply-pool.ts";
import { FreezeConfigs } from "../../src/control/freeze-config.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import { systemClock, systemRandom } from "../../src/kernel/system.ts";
import type { KubeApi, KubeObjectDraft } from "../../src/kube/api.ts";
import { NODES, PODS, POOLS } from "../../src/kube/resources.ts";
import { poolSchema } from "../../src/model/pool.ts";
import { createServer } from "../../src/server/app.ts";
import { FRESH_MS, KubernetesAccess } from "../../src/server/kubernetes-access.ts";
import { createLogger } from "../../src/server/log.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { FakeControlPlane } from "../../src/server/testing/fake-control-plane.ts";
import { BAD_POOLS, GOOD_POOLS } from "../deploy/bad-pools.ts";
import { apiOfAccount } from "./accounts.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");
const SYSTEM = "relevo-system";
const GATEWAY_POD = "relevo-gateway-7d9f8c6b5-abcde";
const WITHIN = { timeout: 20_000, interval: 200 };

let cluster: RealCluster;
let controllers: KubeApi & { close(): Promise<void> };
let app: FastifyInstance;
let fake: FakeControlPlane;
/** Of what is kept about callers; the rest goes by the real time. */
let aheadMs = 0;

const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };

beforeAll(async () => {
  cluster = await startKubernetes({ parts: ["controllers"] });
  await cluster.kubectl("apply", "-k", DEPLOY);
  for (const [name, role] of [
    ["vera", "relevo-viewer"],
    ["olaf", "relevo-operator"],
    ["ada", "relevo-admin"],
    ["nora", "view"],
  ] as const) {
    await cluster.kubectl("create", "serviceaccount", name, "-n", "default");
    await cluster.kubectl("create", "clusterrolebinding", `people-${name}`, `--clusterrole=${role}`, `--serviceaccount=default:${name}`);
  }
  await makePods();
  controllers = await apiOfAccount(cluster, SYSTEM, "relevo-controller");
  fake = new FakeControlPlane();
  app = await createServer({
    options: { host: "0.0.0.0", token: null, webhookSecret: null, version: "0.0.0" },
    controlPlane: fake,
    metrics: createMetrics(),
    log: createLogger({ level: "silent", name: "controller", clock }),
    clock,
    authenticators: [new KubernetesAccess({ kube: controllers, clock })],
  });
});

afterAll(async () => {
  await app?.close();
  await controllers?.close();
  await cluster?.stop();
});

/** On a node that only exists as an object: nothing starts them. */
async function makePods(): Promise<void> {
  await cluster.api.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } });
  const securityContext = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"] },
    runAsNonRoot: true,
    runAsUser: 65_532,
    seccompProfile: { type: "RuntimeDefault" },
  };
  for (const [name, account] of [
    [GATEWAY_POD, "relevo-gateway"],
    ["relevo-agent-x", "relevo-agent"],
  ] as const) {
    const spec = {
      serviceAccountName: account,
      automountServiceAccountToken: false,
      nodeName: "node-a",
      containers: [{ name: "main", image: "any", securityContext }],
    };
    await cluster.api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name }, spec }, { namespace: SYSTEM });
  }
}

async function tokenOf(account: string, namespace = "default", ...more: readonly string[]): Promise<string> {
  return (await cluster.kubectl("create", "token", account, "-n", namespace, "--audience=relevo.dev", ...more)).trim();
}

const boundTo = (pod: string) => ["--bound-object-kind=Pod", `--bound-object-name=${pod}`];

async function call(token: string, method: "GET" | "POST", url: string, payload?: object) {
  const answer = await app.inject({ method, url, headers: { authorization: `Bearer ${token}` }, ...(payload ? { payload } : {}) });
  return { status: answer.statusCode, code: answer.body === "" ? undefined : answer.json().error?.code, body: answer.body };
}

const FREEZE = { pool: null, for: "1h", why: "a test", by: "somebody else" };

test("people have the role that RBAC gives them, and are called by their name", async () => {
  const answers: Record<string, unknown> = {};
  for (const name of ["vera", "olaf", "ada", "nora"]) {
    const token = await tokenOf(name);
    const statuses = [
      (await call(token, "GET", "/v1/pools")).status,
      (await call(token, "POST", "/v1/freeze", FREEZE)).status,
      (await call(token, "POST", "/v1/store/recover", { why: "a test" })).status,
      (await call(token, "POST", "/gateway/v1/reports", {})).status,
    ];
    answers[name] = statuses;
  }
  expect(answers).toEqual({
    vera: [200, 403, 403, 403],
    olaf: [200, 200, 403, 403],
    // past the door: the report is none
    ada: [200, 200, 200, 400],
    nora: [403, 403, 403, 403],
  });
  expect(fake.calls.map(({ with: given }) => (given as { by: string }).by)).toEqual([
    "system:serviceaccount:default:olaf",
    "system:serviceaccount:default:ada",
    "system:serviceaccount:default:ada",
  ]);
});

test("a token for the API server, one of nobody and one that was changed are none", async () => {
  const forApi = (await cluster.kubectl("create", "token", "ada", "-n", "default")).trim();
  const changed = `${(await tokenOf("ada")).slice(0, -8)}AAAAAAAA`;
  for (const token of [forApi, changed, "nonsense"]) expect((await call(token, "GET", "/v1/pools")).status).toBe(401);
});

test("a gateway speaks for the pod that its token is bound to; without a pod for none", async () => {
  const bound = await tokenOf("relevo-gateway", SYSTEM, ...boundTo(GATEWAY_POD));
  const loose = await tokenOf("relevo-gateway", SYSTEM);
  const report = (replica: string) => ({ replica, sequence: 1, at: 1, leaving: false, routes: [] });

  expect((await call(bound, "POST", "/gateway/v1/reports", report(`${GATEWAY_POD}-0123456789`))).status).toBe(204);
  expect((await call(bound, "POST", "/gateway/v1/reports", report("relevo-gateway-7d9f8c6b5-other"))).code).toBe("replica_not_yours");
  expect((await call(loose, "POST", "/gateway/v1/reports", report(`${GATEWAY_POD}-0123456789`))).code).toBe("replica_not_yours");
  expect((await call(bound, "GET", "/v1/pools")).code).toBe("role_missing");
});

test("an agent speaks for the node of its pod, and sends only what agents send", async () => {
  const token = await tokenOf("relevo-agent", SYSTEM, ...boundTo("relevo-agent-x"));
  const { NOTICE_SOURCES } = await import("../../src/notices/registry.ts");
  const source = NOTICE_SOURCES.find(({ sender }) => sender === "agent")?.name ?? "none";
  const beat = (from: string) => call(token, "POST", `/v1/sources/${source}/heartbeat`, { from, everyMs: 30_000 });

  expect((await beat("node-a")).status).toBe(204);
  expect((await beat("node-b")).code).toBe("node_not_yours");
  expect((await call(token, "POST", "/v1/notices/eventbridge", {})).code).toBe("source_not_yours");
  expect((await call(token, "POST", "/v1/freeze", FREEZE)).code).toBe("role_missing");
});

test("a role that is taken away ends within a minute", async () => {
  const token = await tokenOf("vera");
  expect((await call(token, "GET", "/v1/pools")).status).toBe(200);
  await cluster.kubectl("delete", "clusterrolebinding", "people-vera");
  aheadMs += FRESH_MS;
  await vi.waitFor(async () => expect((await call(token, "GET", "/v1/pools")).status).toBe(403), WITHIN);
});

test("a freeze by ConfigMap is read with the controller's own permissions, also one that is not understood", async () => {
  const freezes = new FreezeConfigs({
    api: controllers,
    clock: systemClock,
    random: systemRandom,
    log: () => undefined,
    ownNamespace: SYSTEM,
  });
  const frozen = () => freezes.freezeOf("default/orders", systemClock.now());
  freezes.start();
  await freezes.whenAnswered();
  expect(frozen()).toBeNull();

  await cluster.kubectl("create", "configmap", "another", "-n", "default", "--from-literal=pool=*");
  const create = (namespace: string, ...data: readonly string[]) =>
    cluster.kubectl("create", "configmap", "relevo-freeze", "-n", namespace, ...data.map((each) => `--from-literal=${each}`));
  await create("default", "pool=orders", "until=2100-01-01T00:00:00Z", "reason=a migration");
  await vi.waitFor(() => expect(frozen()).toMatchObject({ why: "a migration", by: "ConfigMap default/relevo-freeze" }), WITHIN);
  await cluster.kubectl("delete", "configmap", "relevo-freeze", "-n", "default");
  await vi.waitFor(() => expect(frozen()).toBeNull(), WITHIN);
  await create(SYSTEM, "pools=orders");
  await vi.waitFor(() => expect(frozen()?.why).toMatch(/is not understood, so all that it may mean is frozen/), WITHIN);
  expect(freezes.freezeOf("elsewhere/any", systemClock.now())).not.toBeNull();
  freezes.stop();
  // The right is to this name alone.
  await expect(controllers.list({ ...(await import("../../src/kube/resources.ts")).CONFIG_MAPS })).rejects.toMatchObject({ httpCode: 403 });
});

test("a dry run of apply asks the API server itself, which refuses what it would refuse, and nothing is made", async () => {
  const parts = { kube: controllers, pools: { list: () => [] } as never };
  const dryRun = (pool: unknown) => applyPool(parts, pool as KubeObjectDraft, poolSchema.parse(GOOD_POOLS[0]?.pool), true);

  await expect(dryRun(BAD_POOLS[0]?.pool)).rejects.toMatchObject({ httpCode: 422 });
  expect(await dryRun(GOOD_POOLS[0]?.pool)).toEqual({ pool: "default/orders", result: "created" });
  expect((await cluster.api.list(POOLS)).items).toEqual([]);
});

// The last one: afterwards the API server is gone.
test("while the API server is away those that it knew are known, all others are told to come again", async () => {
  const known = await tokenOf("olaf");
  const gateway = await tokenOf("relevo-gateway", SYSTEM, ...boundTo(GATEWAY_POD), "--duration=2h");
  const stranger = await tokenOf("ada");
  const report = { replica: GATEWAY_POD, sequence: 2, at: 2, leaving: false, routes: [] };
  expect((await call(known, "GET", "/v1/pools")).status).toBe(200);
  expect((await call(gateway, "POST", "/gateway/v1/reports", report)).status).toBe(204);
  cluster.pieces.pause("apiserver");
  try {
    aheadMs += FRESH_MS;
    expect((await call(known, "GET", "/v1/pools")).status).toBe(200);
    const refused = await call(stranger, "GET", "/v1/pools");
    expect([refused.status, refused.code]).toEqual([503, "auth_unavailable"]);
    aheadMs += 3_600_000;
    expect((await call(gateway, "POST", "/gateway/v1/reports", report)).status).toBe(204);
    expect((await call(known, "GET", "/v1/pools")).status).toBe(503);
  } finally {
    cluster.pieces.resume("apiserver");
  }
});
