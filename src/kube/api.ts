/**
 * The Kubernetes API as this product uses it. Two adapters stand behind it: HTTP (any cluster, the embedded one too) and a direct one over the embedded
 * object store (simulator, embedded controllers). Nothing above knows which.
 *
 * Objects travel as plain JSON (`KubeObject`); whoever needs fields parses the subset that it uses with zod (`src/kube/types.ts`).
 */
import { RelevoError, type ErrorClass } from "../kernel/errors.ts";

/** A kind's address: `{ group: "", version: "v1", plural: "pods", namespaced: true }`. */
export interface ResourceType {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly generateName?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

/** Any object as the server gave it. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** An object as a client sends it: the server fills in the rest of the metadata. */
export interface KubeObjectDraft {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Partial<ObjectMeta>;
  readonly [field: string]: unknown;
}

export interface ObjectRef {
  readonly type: ResourceType;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface ListOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface KubeList {
  readonly resourceVersion: string;
  /** Present while more pages follow. */
  readonly continue?: string | undefined;
  readonly items: readonly KubeObject[];
}

export interface WatchOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly resourceVersion: string;
  /** First everything that is there, as ADDED, then a bookmark that says so, then what happens. Only where the API `hasInitialEvents`. */
  readonly sendInitialEvents?: boolean | undefined;
  /** The server ends the watch after this many seconds, in order. */
  readonly timeoutSeconds?: number | undefined;
}

export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: KubeObject }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string; readonly endsInitialEvents?: boolean }
  | { readonly type: "ERROR"; readonly status: KubeStatus };

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The body of an API error. */
export interface KubeStatus {
  readonly code: number;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
  /** A 410 for an old continue token offers one for the rest of the list at the current version. */
  readonly metadata?: { readonly continue?: string };
}

export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface DeleteOptions {
  readonly preconditions?: Preconditions | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan" | undefined;
}

export interface KubeApi {
  /** Throws `KubeApiError` with code 404 when there is none. */
  get(ref: ObjectRef): Promise<KubeObject>;
  list(type: ResourceType, options?: ListOptions): Promise<KubeList>;
  /**
   * Bookmarks are always asked for. The iterable ends when the server ends the watch or the signal aborts; it throws `KubeApiError` when the server
   * refuses it (410 may come this way or as an ERROR event) and a retryable `RelevoError` when the connection breaks.
   */
  watch(type: ResourceType, options: WatchOptions, signal: AbortSignal): AsyncIterable<WatchEvent>;
  create(type: ResourceType, object: KubeObjectDraft, options?: { readonly namespace?: string | undefined }): Promise<KubeObject>;
  /** PUT; `object.metadata.resourceVersion`, when given, is a precondition. */
  replace(ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject>;
  /** What `create` or `replace` would be answered, refusals too; nothing is changed. Absent where nobody can be asked. */
  rehearse?(verb: "create" | "replace", ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject>;
  /** A JSON merge patch (RFC 7386); `metadata.uid` and `metadata.resourceVersion` inside it are preconditions (`isConflict` otherwise). */
  patch(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject>;
  /** A JSON merge patch of the status subresource. */
  patchStatus(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject>;
  /** A JSON merge patch of the scale subresource, with the same preconditions; answers the Scale. */
  patchScale(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject>;
  delete(ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** POST …/pods/NAME/eviction. */
  evict(ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** It knows `sendInitialEvents`; the server behind it may still refuse them. */
  readonly hasInitialEvents?: boolean;
  /** The same API, its calls, reads too, before all others that wait. Absent where none waits. */
  first?(): KubeApi;
  /** The same API, its calls made as another user. Absent where nobody is asked who calls, as in the embedded cluster's own process. */
  as?(user: string): KubeApi;
}

/** For what must not wait behind other calls, how ever many there are. */
export function beforeOthers(kube: KubeApi): KubeApi {
  return kube.first?.() ?? kube;
}

/** The API as a ServiceAccount sees it; unchanged without an account. A caller who may not act for it is answered 403. */
export function asServiceAccount(kube: KubeApi, namespace: string, account: string | undefined): KubeApi {
  return account === undefined ? kube : (kube.as?.(`system:serviceaccount:${namespace}:${account}`) ?? kube);
}

/** The server answered, and the answer is an error. */
export class KubeApiError extends RelevoError {
  readonly status: KubeStatus;

  constructor(status: KubeStatus, what: string) {
    super(
      `kube_${(status.reason ?? String(status.code)).replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase()}`,
      `${what}: ${status.message ?? status.reason ?? status.code}`,
      { class: classify(status) },
    );
    this.name = "KubeApiError";
    this.status = status;
  }

  get httpCode(): number {
    return this.status.code;
  }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof KubeApiError && error.httpCode === 404;
}

export function isConflict(error: unknown): boolean {
  return error instanceof KubeApiError && error.class === "conflict";
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubeApiError && error.httpCode === 409 && error.status.reason === "AlreadyExists";
}

export function isForbidden(error: unknown): error is KubeApiError {
  return error instanceof KubeApiError && error.httpCode === 403;
}

export function isGone(error: unknown): boolean {
  return error instanceof KubeApiError && error.httpCode === 410;
}

function classify(status: KubeStatus): ErrorClass {
  if (status.code === 422 && isOfAnother(status)) return "conflict";
  if (status.code === 409 && status.reason !== "AlreadyExists") return "conflict";
  return status.code === 429 || status.code >= 500 ? "retryable" : "terminal";
}

/** A patch that names the uid of an object which is not there any more is answered 422, not 409. */
function isOfAnother({ details }: KubeStatus): boolean {
  const causes = details?.causes ?? [];
  return causes.length > 0 && causes.every(({ field }) => field === "metadata.uid");
}
