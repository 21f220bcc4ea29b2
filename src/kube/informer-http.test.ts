/** The informer over HTTP, from end to end: the client, a server of the embedded cluster, and what happens when that server dies and another takes its place. */
import { expect, test } from "vitest";
import type { PodLogs } from "../embedded/http/pod-logs.ts";
import { type EmbeddedApi, startEmbeddedApi } from "../embedded/http/server.ts";
import { directKubeApi, type EmbeddedKubeApi } from "../embedded/store/direct-api.ts";
import { ObjectStore } from "../embedded/store/object-store.ts";
import { systemClock, systemIds, systemRandom } from "../kernel/system.ts";
import { httpKubeApi } from "./http-api.ts";
import { createInformer } from "./informer.ts";
import { NODES } from "./resources.ts";
import { type KubeNode, parseNode } from "./types.ts";

interface Server {
  readonly http: EmbeddedApi;
  readonly api: EmbeddedKubeApi;
}

async function serve(port: number, firstResourceVersion: number): Promise<Server> {
  const store = new ObjectStore({ clock: systemClock, ids: systemIds, firstResourceVersion });
  const podLogs: PodLogs = { read: () => ReadableStream.from([]) };
  return { http: await startEmbeddedApi({ store, clock: systemClock, port, podLogs }), api: directKubeApi(store) };
}

const node = (name: string) => ({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: { providerID: `aws:///zone-1/i-${name}` } });

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = systemClock.monotonic() + 10_000;
  while (!condition()) {
    if (systemClock.monotonic() > end) throw new Error(`not within 10 s: ${what}`);
    await systemClock.sleep(5);
  }
}

test("changes arrive over HTTP; when the server is replaced by one that knows nothing, the copy follows it, and what is gone is told", async () => {
  const first = await serve(0, 1);
  await first.api.create(NODES, node("a"));
  const client = httpKubeApi({ baseUrl: first.http.url });
  const nodes = createInformer<KubeNode>({
    api: client,
    type: NODES,
    clock: systemClock,
    random: systemRandom,
    log: () => undefined,
    parse: parseNode,
    reflector: { backoffFirstMs: 20 },
  });
  const names = (): string =>
    nodes
      .list()
      .map(({ metadata }) => metadata.name)
      .join(",");
  const gone: string[] = [];
  nodes.onChange((change) => (change.gone ? gone.push(change.name) : 0));
  nodes.start();
  await until(() => names() === "a", "the list");
  await first.api.create(NODES, node("b"));
  await until(() => names() === "a,b", "an addition");
  await first.api.delete({ type: NODES, name: "b" });
  await until(() => names() === "a", "a deletion");
  gone.length = 0;

  await first.http.close();
  await until(() => nodes.state().failing !== undefined, "the failure is seen");
  expect(names()).toBe("a");
  const second = await serve(Number(new URL(first.http.url).port), 1_000_000);
  await second.api.create(NODES, node("c"));
  await until(() => names() === "c" && nodes.state().failing === undefined, "the new server's state");
  expect(gone).toEqual(["a"]);

  nodes.stop();
  await client.close();
  await second.http.close();
});
