import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeObjectDraft } from "../../kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, POOLS, SITES } from "../../kube/resources.ts";
import { loadCustomResources, persistCustomResources } from "./persistence.ts";
import { aPod, storeForTest } from "./store-for-test.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "relevo-resources-"));
});
afterEach(() => {
  chmodSync(dir, 0o700);
  rmSync(dir, { recursive: true, force: true });
});

const path = (): string => join(dir, "custom-resources.json");
const pool = (name: string, namespace = "default"): KubeObjectDraft => ({
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name, namespace, finalizers: ["relevo.dev/drain"] },
  spec: { size: 1 },
});
const shops = { group: "example.com", version: "v1", kind: "Shop", plural: "shops", namespaced: true };

function opened() {
  const store = storeForTest({ firstResourceVersion: 1_000 });
  const loaded = loadCustomResources(store, dir);
  persistCustomResources(store, dir);
  return { store, loaded };
}

test("pools, sites, definitions and their objects come back with their uids; pods, and status, do not", () => {
  const { store } = opened();
  store.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } });
  const before = store.create(POOLS, pool("orders", "team"));
  const changed = store.modify({ type: POOLS, namespace: "team", name: "orders" }, (each) => ({ ...each, spec: { size: 2 } }));
  store.modify({ type: POOLS, namespace: "team", name: "orders" }, (each) => ({ ...each, status: { serving: 2 } }), { part: "status" });
  store.create(SITES, { apiVersion: "relevo.dev/v1alpha1", kind: "Site", metadata: { name: "local" } });
  store.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "shops.example.com" },
    spec: { group: "example.com", scope: "Namespaced", names: { kind: "Shop", plural: "shops" }, versions: [{ name: "v1", served: true }] },
  });
  store.create(shops, { apiVersion: "example.com/v1", kind: "Shop", metadata: { name: "one", namespace: "default" } });
  store.create(PODS, aPod("p"));
  store.create(POOLS, pool("gone"));
  store.modify({ type: POOLS, namespace: "default", name: "gone" }, (each) => ({
    ...each,
    metadata: { ...each.metadata, finalizers: [] },
  }));
  store.delete({ type: POOLS, namespace: "default", name: "gone" });

  const { store: next, loaded } = opened();
  const back = next.get({ type: POOLS, namespace: "team", name: "orders" });
  expect(loaded).toBe(4);
  expect(back).toEqual({ ...changed, metadata: { ...changed.metadata, resourceVersion: back.metadata.resourceVersion } });
  expect(back.metadata.uid).toBe(before.metadata.uid);
  expect([next.list(PODS).items, next.list(POOLS).items.length, next.list(SITES).items.length, next.list(shops).items.length]).toEqual([
    [],
    1,
    1,
    1,
  ]);
});

test("a status alone is not worth a write", () => {
  const { store } = opened();
  store.create(POOLS, pool("orders"));
  const written = readFileSync(path(), "utf8");
  rmSync(path());
  store.modify({ type: POOLS, namespace: "default", name: "orders" }, (each) => ({ ...each, status: { serving: 2 } }), { part: "status" });

  expect(existsSync(path())).toBe(false);
  expect(JSON.parse(written)).toMatchObject({ version: 1, objects: [{ kind: "Pool", metadata: { name: "orders" } }] });
});

test("a file that is no JSON, of another shape or of an unknown kind is a clear error", () => {
  const attempt = (text: string): unknown => {
    writeFileSync(path(), text);
    try {
      return loadCustomResources(storeForTest(), dir);
    } catch (error) {
      return error instanceof RelevoError ? [error.code, error.todo] : error;
    }
  };
  const corrupt = ["custom_resources_corrupt", "restore the file from a copy, or move it away to start without the custom resources in it"];

  expect(attempt('{"version":1,"objects":[{"kin')).toEqual(corrupt);
  expect(attempt('{"version":2,"objects":[]}')).toEqual(corrupt);
  expect(attempt('{"version":1,"objects":[{"kind":"Pool"}]}')).toEqual(corrupt);
  const unknown = {
    apiVersion: "relevo.dev/v9",
    kind: "Pool",
    metadata: { name: "a", uid: "u", creationTimestamp: "2030-01-01T00:00:00Z" },
  };
  expect(attempt(JSON.stringify({ version: 1, objects: [unknown] }))).toEqual(["custom_resources_unknown_kind", expect.any(String)]);
});

test("what cannot be saved is not changed, and works again once it can be saved", () => {
  const { store } = opened();
  store.create(POOLS, pool("first"));
  rmSync(dir, { recursive: true });
  expect(() => store.create(POOLS, pool("second"))).toThrow(
    expect.objectContaining({ code: "custom_resources_not_saved", class: "retryable" }),
  );
  expect(store.find({ type: POOLS, namespace: "default", name: "second" })).toBeUndefined();

  persistCustomResources(store, dir);
  store.create(POOLS, pool("second"));
  expect(opened().loaded).toBe(2);
});
