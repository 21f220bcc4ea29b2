/**
 * Custom resources on disk. What users declared outlives the embedded cluster; nodes and pods do not.
 *
 * 1. A change is on disk (write, fsync, rename, fsync of the folder) before it is made: a full disk refuses the write and nothing has changed.
 * 2. Status is not kept: it says what was seen, and after a restart nothing was.
 * 3. One file holds everything, so that it is never half old and half new.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeObject, ResourceType } from "../../kube/api.ts";
import { apiVersionOf, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, POOLS, SITES } from "../../kube/resources.ts";
import { isType } from "../kind-key.ts";
import type { KindSpec } from "../kinds.ts";
import type { StoreEvent } from "./event-window.ts";
import type { ObjectStore } from "./object-store.ts";

const FILE = "custom-resources.json";
/** Beyond it something is wrong with who writes them; a file is written whole at each change. */
const FILE_BYTES_MAX = 64 * 2 ** 20;

const savedObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), uid: z.string(), creationTimestamp: z.string() }),
});
const savedFile = z.object({ version: z.literal(1), objects: z.array(savedObject) });

/** Puts the saved objects into a fresh store, with their uids; makes the namespaces that they need. Returns how many. Throws for a file that cannot be read or understood. */
export function loadCustomResources(store: ObjectStore, dir: string): number {
  const objects = readSaved(join(dir, FILE));
  // Definitions first: they make the kinds of the others known.
  const ordered = objects.toSorted(
    (a, b) => Number(b.kind === CUSTOM_RESOURCE_DEFINITIONS.kind) - Number(a.kind === CUSTOM_RESOURCE_DEFINITIONS.kind),
  );
  for (const object of ordered) {
    const { namespace } = object.metadata;
    if (namespace !== undefined && !store.find({ type: NAMESPACES, name: namespace })) {
      store.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    }
    store.restore(typeOf(store, object), object);
  }
  return objects.length;
}

function readSaved(path: string): readonly KubeObject[] {
  if (!existsSync(path)) return [];
  const todo = "restore the file from a copy, or move it away to start without the custom resources in it";
  try {
    return savedFile.parse(JSON.parse(readFileSync(path, "utf8"))).objects as unknown as readonly KubeObject[];
  } catch (cause) {
    const found = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new RelevoError("custom_resources_corrupt", `the file with the custom resources cannot be read: ${path}`, { found, todo, cause });
  }
}

function typeOf(store: ObjectStore, object: KubeObject): ResourceType {
  const type = store.kinds.all().find((kind) => kind.kind === object.kind && apiVersionOf(kind) === object.apiVersion);
  if (type) return type;
  throw new RelevoError("custom_resources_unknown_kind", `the saved custom resources hold a kind that is not served`, {
    found: `${object.apiVersion} ${object.kind}`,
    todo: "it may come from a newer version: use that, or take the object out of the file",
  });
}

/** From now on every change of a custom resource is on disk before it is made. Call it after `loadCustomResources`. */
export function persistCustomResources(store: ObjectStore, dir: string): void {
  mkdirSync(dir, { recursive: true });
  const saved = new Map<string, string>();
  for (const kind of store.kinds.all()) {
    if (isKept(store, kind)) for (const object of store.list(kind).items) saved.set(keyOf(object), textOf(object));
  }
  store.journalWith((kind, event) => {
    if (isKept(store, kind)) save(dir, saved, event);
  });
}

/** What users declare: pools, sites, definitions, and objects of the kinds that they define. Claims and node pools are the provisioner's. */
function isKept(store: ObjectStore, kind: KindSpec): boolean {
  return [POOLS, SITES, CUSTOM_RESOURCE_DEFINITIONS].some((type) => isType(kind, type)) || store.kinds.isAdded(kind);
}

function keyOf(object: KubeObject): string {
  return `${object.apiVersion} ${object.kind} ${object.metadata.namespace ?? ""} ${object.metadata.name}`;
}

/** Without what changes although nobody declared anything. */
function textOf(object: KubeObject): string {
  const { status: _status, ...rest } = object;
  const { resourceVersion: _resourceVersion, ...metadata } = object.metadata;
  return JSON.stringify(object.kind === CUSTOM_RESOURCE_DEFINITIONS.kind ? { ...object, metadata } : { ...rest, metadata });
}

function save(dir: string, saved: Map<string, string>, { type, object }: StoreEvent): void {
  const key = keyOf(object);
  const before = saved.get(key);
  const after = type === "DELETED" ? undefined : textOf(object);
  if (before === after) return;
  put(saved, key, after);
  try {
    writeAll(dir, `{"version":1,"objects":[${[...saved.values()].join(",\n")}]}\n`);
  } catch (cause) {
    put(saved, key, before);
    if (cause instanceof RelevoError) throw cause;
    throw new RelevoError(
      "custom_resources_not_saved",
      `the custom resource could not be saved, so it was not changed: ${join(dir, FILE)}`,
      {
        class: "retryable",
        found: cause instanceof Error ? cause.message : String(cause),
        cause,
      },
    );
  }
}

function put(map: Map<string, string>, key: string, value: string | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

function writeAll(dir: string, text: string): void {
  const bytes = Buffer.from(text);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new RelevoError("custom_resources_too_large", "the custom resources together are too large", {
      found: bytes.length,
      allowed: `at most ${FILE_BYTES_MAX} bytes`,
    });
  }
  const temporary = join(dir, `${FILE}.tmp`);
  const file = openSync(temporary, "w", 0o600);
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, join(dir, FILE));
  syncFolder(dir);
}

/** The rename itself is on disk only then. Windows cannot open folders, and needs no such thing. */
function syncFolder(dir: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(dir, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
