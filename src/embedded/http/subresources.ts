/** What hangs below an object: eviction, binding, scale, logs. */
import { once } from "node:events";
import type { KubeObject, ObjectRef } from "../../kube/api.ts";
import type { KindSpec } from "../kinds.ts";
import { badRequest, methodNotAllowed, noSuchResource } from "../store/api-errors.ts";
import { isJsonObject, type JsonObject, valueAt } from "../store/json.ts";
import { mergePatch } from "../store/merge-patch.ts";
import { bindPod, evictPod } from "../store/pod-subresources.ts";
import { scaleOf, withScale } from "../store/scale.ts";
import { notServed, sendJson } from "./answer.ts";
import { parseObject, parseValue, readBody } from "./body.ts";
import { type ApiContext, type Exchange, isDryRun, isTrue, textOf, wholeNumber } from "./context.ts";

const NOT_SERVED: Readonly<Record<string, string>> = {
  exec: "the embedded cluster does not serve exec: its pods are processes of this machine, use a shell here",
  attach: "the embedded cluster does not serve attach: use `kubectl logs -f`",
  portforward:
    "the embedded cluster does not serve port-forward: its pods have loopback addresses of their own (see `kubectl get pod -o wide`), connect to them directly",
  proxy: "the embedded cluster does not serve proxy: connect to the address of the pod directly",
  ephemeralcontainers: "the embedded cluster does not serve ephemeral containers",
  resize: "the embedded cluster does not serve resize: replace the pod",
  token: "the embedded cluster does not issue service account tokens",
};

const SUCCESS = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

/** Throws a 501 with one clear sentence for what a real server has and this one has not, and 404 for anything else. */
export async function serveSubresource(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  ref: ObjectRef,
  subresource: string,
): Promise<void> {
  const refusal = NOT_SERVED[subresource];
  if (refusal !== undefined) throw notServed(refusal);
  if (!(kind.subresources as readonly string[]).includes(subresource)) throw noSuchResource();
  switch (subresource) {
    case "eviction":
      return evict(context, exchange, ref);
    case "binding":
      return bind(context, exchange, ref);
    case "scale":
      return scale(context, exchange, ref);
    case "log":
      return sendLog(context, exchange, ref);
    default:
      throw methodNotAllowed(`the server does not allow ${exchange.method} on ${subresource}`);
  }
}

function only(exchange: Exchange, method: string): void {
  if (exchange.method !== method) throw methodNotAllowed("the server does not allow this method on the requested resource");
}

async function evict(context: ApiContext, exchange: Exchange, ref: ObjectRef): Promise<void> {
  only(exchange, "POST");
  const eviction = parseObject(await readBody(exchange.request));
  const name = valueAt(eviction, "metadata.name");
  if (name !== ref.name) throw badRequest(`name in URL does not match name in Eviction object: ${ref.name} and ${String(name)}`);
  const options = isJsonObject(eviction["deleteOptions"]) ? eviction["deleteOptions"] : {};
  const dryRun = isDryRun(exchange.query, "CreateOptions") || (Array.isArray(options["dryRun"]) && options["dryRun"].includes("All"));
  evictPod(context.store, ref, { ...options, dryRun });
  sendJson(exchange.response, 201, SUCCESS);
}

async function bind(context: ApiContext, exchange: Exchange, ref: ObjectRef): Promise<void> {
  only(exchange, "POST");
  const target = valueAt(parseObject(await readBody(exchange.request)), "target.name");
  if (typeof target !== "string" || target === "") throw badRequest("a Binding names its node in target.name");
  bindPod(context.store, ref, target);
  sendJson(exchange.response, 201, SUCCESS);
}

const SCALE_PATCH_TYPES = ["application/merge-patch+json", "application/strategic-merge-patch+json"];

async function scale(context: ApiContext, exchange: Exchange, ref: ObjectRef): Promise<void> {
  if (exchange.method === "GET") return sendJson(exchange.response, 200, scaleOf(context.store.get(ref)));
  const body = await readBody(exchange.request);
  const given = exchange.method === "PUT" ? parseObject(body) : undefined;
  const patch = exchange.method === "PATCH" ? parseValue(body, SCALE_PATCH_TYPES) : undefined;
  if (given === undefined && patch === undefined) throw methodNotAllowed("the server does not allow this method on the requested resource");
  if (given === undefined && !isJsonObject(patch)) throw badRequest("a patch of a scale is an object");
  const scaled = context.store.modify(
    ref,
    (before) => withScale(before, given ?? (mergePatch(scaleOf(before), patch) as JsonObject), ref.name),
    { dryRun: isDryRun(exchange.query, exchange.method === "PUT" ? "UpdateOptions" : "PatchOptions") },
  );
  sendJson(exchange.response, 200, scaleOf(scaled));
}

async function sendLog(context: ApiContext, exchange: Exchange, ref: ObjectRef): Promise<void> {
  only(exchange, "GET");
  const { query, response } = exchange;
  const pod = context.store.get(ref);
  const container = containerOf(pod, textOf(query, "container"));
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const signal = AbortSignal.any([gone.signal, context.closing]);
  const options = { follow: isTrue(query, "follow"), tailLines: wholeNumber(query, "tailLines"), previous: isTrue(query, "previous") };
  let left = wholeNumber(query, "limitBytes") ?? Number.POSITIVE_INFINITY;
  const start = (): void => {
    if (!response.headersSent) response.writeHead(200, { "content-type": "text/plain" });
  };
  for await (const chunk of context.podLogs.read(ref.namespace ?? "", ref.name, container, options, signal)) {
    start();
    const isWritable = response.write(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0 || signal.aborted) break;
    if (!isWritable) await once(response, "drain", { signal });
  }
  start();
  response.end();
}

function containerOf(pod: KubeObject, asked: string | undefined): string {
  const containers = valueAt(pod, "spec.containers");
  const names = (Array.isArray(containers) ? containers : []).map((container) => String(valueAt(container, "name")));
  const { name } = pod.metadata;
  if (asked !== undefined && asked !== "") {
    if (names.includes(asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${name}`);
  }
  const [first] = names;
  if (first === undefined || names.length > 1)
    throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(" ")}]`);
  return first;
}
