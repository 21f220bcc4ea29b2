/** A controller with a token file and a gateway whose token is bound to its name, as processes of their own; a freeze by ConfigMap on the way. Level: real processes. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startEmbeddedCluster } from "../../src/embedded/cluster.ts";
import { systemClock as clock, systemIds as ids, newSecret, systemRandom as random } from "../../src/kernel/system.ts";
import { httpKubeApi } from "../../src/kube/http-api.ts";
import { CONFIG_MAPS } from "../../src/kube/resources.ts";
import { tokenHashOf } from "../../src/server/access.ts";
import { type Relevo, spawnRelevo } from "./controllers.ts";
import { ordersPool } from "./fleet.ts";

const WITHIN = { timeout: 30_000, interval: 200 };
const TOKENS = { vera: newSecret(), ada: newSecret(), "gw-a": newSecret() };
const dir = mkdtempSync(join(tmpdir(), "relevo-access-"));

let cluster: Awaited<ReturnType<typeof startEmbeddedCluster>>;
let controller: Relevo;
const running: Relevo[] = [];

async function call(token: keyof typeof TOKENS, path: string, body?: object) {
  const headers = { authorization: `Bearer ${TOKENS[token]}`, ...(body ? { "content-type": "application/json" } : {}) };
  const answer = await fetch(`${controller.url}${path}`, { headers, ...(body ? { method: "POST", body: JSON.stringify(body) } : {}) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

beforeAll(async () => {
  cluster = await startEmbeddedCluster({ dir: join(dir, "cluster"), clock, ids, random, nodes: 2, provisioner: {} });
  const users = { vera: "viewer", ada: "admin", "gw-a": "gateway" } as const;
  const lines = Object.entries(users).map(([name, role]) => ({ name, role, tokenHash: tokenHashOf(TOKENS[name as keyof typeof users]) }));
  writeFileSync(join(dir, "tokens.yaml"), JSON.stringify(lines));
  writeFileSync(join(dir, "gateway.token"), `${TOKENS["gw-a"]}\n`);
  writeFileSync(join(dir, "gateway.key"), newSecret());
  writeFileSync(
    join(dir, "kubeconfig"),
    JSON.stringify({
      "current-context": "here",
      contexts: [{ name: "here", context: { cluster: "here", user: "me" } }],
      clusters: [{ name: "here", cluster: { server: cluster.url } }],
      users: [{ name: "me", user: {} }],
    }),
  );
  controller = await spawnRelevo(dir, "controller", [
    "controller",
    ...["--kubeconfig", join(dir, "kubeconfig"), "--store", join(dir, "store.db"), "--port", "0"],
    ...["--token-file", join(dir, "tokens.yaml")],
  ]);
  running.push(controller);
});

afterAll(async () => {
  for (const process of running.toReversed()) await process.signal("SIGTERM");
  await cluster?.close();
  rmSync(dir, { recursive: true, force: true });
});

async function startGateway(name: string): Promise<Relevo> {
  const args = ["gateway", "--controller", controller.url, "--key-file", join(dir, "gateway.key"), "--port", "0", "--replica", name];
  const gateway = await spawnRelevo(dir, name, args, { RELEVO_TOKEN_FILE: join(dir, "gateway.token") });
  running.push(gateway);
  return gateway;
}

test("a gateway is let in by the token of its own name, and one that took another's name is not", async () => {
  const gateway = await startGateway("gw-a");
  const thief = await startGateway("gw-b");
  const replicas = async () => ((await call("vera", "/v1/gateways")).body.items as { replica: string }[]).map(({ replica }) => replica);

  await vi.waitFor(async () => expect(await replicas()).toEqual([gateway.facts.replica]), WITHIN);
  expect(gateway.facts.replica).toMatch(/^gw-a-[0-9a-f]{10}$/);
  await thief.signal("SIGTERM");
  expect(await replicas()).toEqual([gateway.facts.replica]);
});

test("a viewer reads and changes nothing; a freeze by ConfigMap keeps a Pool that an admin applies still", async () => {
  const kube = httpKubeApi({ baseUrl: cluster.url });
  const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "relevo-freeze" }, data: { pool: "*", reason: "not yet" } };
  await kube.create(CONFIG_MAPS, config, { namespace: "default" });
  const pool = await ordersPool("http://127.0.0.1:1", 1, {});

  expect((await call("vera", "/v1/apply", pool)).body.error).toMatchObject({
    code: "role_missing",
    found: "viewer",
    allowed: "the role admin",
  });
  expect((await call("ada", "/v1/apply", pool)).status).toBe(200);
  await vi.waitFor(
    async () => expect((await call("vera", "/v1/pools/default/orders")).body).toMatchObject({ freeze: { why: "not yet" }, phases: {} }),
    WITHIN,
  );
  await kube.delete({ type: CONFIG_MAPS, namespace: "default", name: "relevo-freeze" });
  await vi.waitFor(async () => expect((await call("vera", "/v1/instances")).body.items).toHaveLength(1), WITHIN);
  expect((await call("gw-a", "/v1/instances")).status).toBe(403);
  await kube.close();
});
