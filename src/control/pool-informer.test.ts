import { expect, test } from "vitest";
import type { KubeObject } from "../kube/api.ts";
import { parsePool } from "./pool-informer.ts";

const SPEC = Object.freeze({
  driver: "service",
  size: { desired: 1 },
  blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
});
const CREATED = { namespace: "default", uid: "u1", resourceVersion: "1", creationTimestamp: "2030-01-01T00:00:00Z" };

function pool(spec: object, name: string, rest: Partial<KubeObject["metadata"]> = {}): KubeObject {
  return { apiVersion: "relevo.dev/v1alpha1", kind: "Pool", metadata: { ...CREATED, name, ...rest }, spec };
}

test("a state that shares its spec with one that was parsed is told as if it had been parsed itself", () => {
  const first = parsePool(pool(SPEC, "orders"));
  const later = { resourceVersion: "2", finalizers: ["relevo.dev/pool"], labels: { team: "a" }, deletionTimestamp: "2030-01-02T00:00:00Z" };
  const shared = parsePool(pool(SPEC, "orders", later));
  expect(first.ok && shared.ok && first.value.document.spec === shared.value.document.spec).toBe(true);
  expect(shared).toEqual(parsePool(pool(structuredClone(SPEC), "orders", later)));
  expect(parsePool(pool(SPEC, "billing"))).toEqual(parsePool(pool(structuredClone(SPEC), "billing")));
});
