/** The controller's view of the cluster: every call is noted, and a test can make calls fail as a server that is away would. */
import type { KubeApi, KubeObject, ListOptions, ObjectRef, ResourceType } from "../../src/kube/api.ts";
import { KubeApiError } from "../../src/kube/api.ts";

export type Verb = "get" | "list" | "watch" | "create" | "replace" | "patch" | "patchStatus" | "patchScale" | "delete" | "evict";

export interface Call {
  readonly verb: Verb;
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** What was sent, where something was: an object, a patch, the options of a delete. */
  readonly body: unknown;
}

const READS: ReadonlySet<Verb> = new Set(["get", "list", "watch"]);

export function isWrite({ verb }: Call): boolean {
  return !READS.has(verb);
}

/** `patch Node/node-a1`. */
export function lineOf({ verb, kind, name }: Call): string {
  return `${verb} ${kind}${name === undefined ? "" : `/${name}`}`;
}

export class ObservedKube implements KubeApi {
  readonly calls: Call[] = [];
  /** Which calls are answered by an error, and by which. */
  failing: (call: Call) => Error | undefined = () => undefined;
  /** Which calls have their effect and lose their reply. */
  losing: (call: Call) => boolean = () => false;
  readonly #inner: KubeApi;
  #watches = new AbortController();

  constructor(inner: KubeApi) {
    this.#inner = inner;
  }

  writes(): readonly Call[] {
    return this.calls.filter(isWrite);
  }

  /** Every open watch ends at once, as when a server goes away. */
  breakWatches(): void {
    this.#watches.abort();
    this.#watches = new AbortController();
  }

  get(ref: ObjectRef): Promise<KubeObject> {
    return this.#call(callOf("get", ref), () => this.#inner.get(ref));
  }

  list(type: ResourceType, options: ListOptions = {}): ReturnType<KubeApi["list"]> {
    return this.#call(callOf("list", { type, namespace: options.namespace }, options), () => this.#inner.list(type, options));
  }

  async *watch(...[type, options, signal]: Parameters<KubeApi["watch"]>): ReturnType<KubeApi["watch"]> & AsyncGenerator {
    const call = callOf("watch", { type, namespace: options.namespace }, options);
    this.calls.push(call);
    const fault = this.failing(call);
    if (fault !== undefined) throw fault;
    yield* this.#inner.watch(type, options, AbortSignal.any([signal, this.#watches.signal]));
  }

  create(...[type, object, options = {}]: Parameters<KubeApi["create"]>): Promise<KubeObject> {
    const { namespace } = options;
    return this.#call(callOf("create", { type, namespace, name: object.metadata?.name }, object), () =>
      this.#inner.create(type, object, options),
    );
  }

  replace(...[ref, object]: Parameters<KubeApi["replace"]>): Promise<KubeObject> {
    return this.#call(callOf("replace", ref, object), () => this.#inner.replace(ref, object));
  }

  patch(...[ref, body]: Parameters<KubeApi["patch"]>): Promise<KubeObject> {
    return this.#call(callOf("patch", ref, body), () => this.#inner.patch(ref, body));
  }

  patchScale(...[ref, body]: Parameters<KubeApi["patchScale"]>): Promise<KubeObject> {
    return this.#call(callOf("patchScale", ref, body), () => this.#inner.patchScale(ref, body));
  }

  patchStatus(...[ref, body]: Parameters<KubeApi["patchStatus"]>): Promise<KubeObject> {
    return this.#call(callOf("patchStatus", ref, body), () => this.#inner.patchStatus(ref, body));
  }

  delete(...[ref, options = {}]: Parameters<KubeApi["delete"]>): Promise<void> {
    return this.#call(callOf("delete", ref, options), () => this.#inner.delete(ref, options));
  }

  evict(...[ref, options = {}]: Parameters<KubeApi["evict"]>): Promise<void> {
    return this.#call(callOf("evict", ref, options), () => this.#inner.evict(ref, options));
  }

  async #call<T>(call: Call, effect: () => Promise<T>): Promise<T> {
    this.calls.push(call);
    const fault = this.failing(call);
    if (fault !== undefined) throw fault;
    const answer = await effect();
    if (this.losing(call)) throw serverAway();
    return answer;
  }
}

export function serverAway(): KubeApiError {
  return new KubeApiError({ code: 503, reason: "ServiceUnavailable", message: "the server is away" }, "test");
}

interface Aim {
  readonly type: ResourceType;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

function callOf(verb: Verb, { type, namespace, name }: Aim, body?: unknown): Call {
  return { verb, kind: type.kind, namespace, name, body };
}
