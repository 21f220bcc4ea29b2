/** The Pool documents, parsed by their schema: an invalid one is told and changes nothing. */
import { createHash } from "node:crypto";
import type { KubeObject } from "../kube/api.ts";
import type { Parsed } from "../kube/types.ts";
import { type PoolDocument, poolKey, poolSchema, type PoolSpec, snapshotOf } from "../model/pool.ts";

export interface PoolEntry {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  /** RFC 3339, as the server wrote it. */
  readonly createdAt: string;
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
  readonly document: PoolDocument;
  readonly blueprintHash: string;
}

export const POOL_FINALIZER = "relevo.dev/pool";

/** By a spec that is frozen: a cluster in this process shares it between the states of a Pool, of which most are writes of its status. */
const parsedSpecs = new WeakMap<object, { readonly name: string; readonly namespace: string | undefined; readonly entry: PoolEntry }>();

export function parsePool(object: KubeObject): Parsed<PoolEntry> {
  const { name, namespace } = object.metadata;
  const spec = object["spec"];
  const isShared = typeof spec === "object" && spec !== null && Object.isFrozen(spec);
  const known = isShared ? parsedSpecs.get(spec) : undefined;
  if (known !== undefined && known.name === name && known.namespace === namespace) {
    const { document, key, blueprintHash } = known.entry;
    const metadata = { ...object.metadata, name, namespace: document.metadata.namespace };
    return { ok: true, value: entryOf(object, key, { ...document, metadata }, blueprintHash) };
  }
  const parsed = parseWhole(object);
  if (isShared && parsed.ok) parsedSpecs.set(spec, { name, namespace, entry: parsed.value });
  return parsed;
}

function parseWhole(object: KubeObject): Parsed<PoolEntry> {
  const parsed = poolSchema.safeParse(object);
  if (!parsed.success) {
    return {
      ok: false,
      problem: parsed.error.issues
        .slice(0, 3)
        .map((issue) => `${issue.path.join(".")}: ${issue.message}`)
        .join("; "),
    };
  }
  const document = parsed.data;
  const key = poolKey(document.metadata.namespace, document.metadata.name);
  return { ok: true, value: entryOf(object, key, document, hashOf(document.spec)) };
}

function entryOf({ metadata }: KubeObject, key: string, document: PoolDocument, blueprintHash: string): PoolEntry {
  return {
    key,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    generation: metadata.generation ?? 1,
    createdAt: metadata.creationTimestamp ?? "",
    isDeleting: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    document,
    blueprintHash,
  };
}

/** With the account that makes the objects of a Pool which names none. */
export function poolParser(instancesAccount: string | undefined): (object: KubeObject) => Parsed<PoolEntry> {
  if (instancesAccount === undefined) return parsePool;
  return (object) => {
    const parsed = parsePool(object);
    if (!parsed.ok || parsed.value.document.spec.serviceAccountName !== undefined) return parsed;
    const { document } = parsed.value;
    const spec = { ...document.spec, serviceAccountName: instancesAccount };
    return { ok: true, value: { ...parsed.value, document: { ...document, spec } } };
  };
}

/** Of an instance's snapshot; twelve hexadecimal digits tell apart all that one pool will ever have. */
export function hashOf(spec: PoolSpec): string {
  return createHash("sha256")
    .update(JSON.stringify(snapshotOf(spec)))
    .digest("hex")
    .slice(0, 12);
}
