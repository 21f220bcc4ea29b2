import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { KubeApiError, type KubeApi, type KubeList, type KubeObject, type WatchEvent } from "../../kube/api.ts";
import { CONFIG_MAPS } from "../../kube/resources.ts";
import { Informer } from "./informer.ts";
import { silentLog } from "./log.ts";

const object = (name: string, resourceVersion: number, uid = name): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default", uid, resourceVersion: String(resourceVersion), creationTimestamp: "" },
});

/** Answers lists and watches as a test says, one after the other. */
function scripted(lists: readonly (() => Promise<KubeList>)[], watches: readonly ((from: string) => AsyncIterable<WatchEvent>)[]) {
  const asked: string[] = [];
  let listed = 0;
  let watched = 0;
  const api = {
    list: async () => {
      asked.push("list");
      return (await lists[Math.min(listed++, lists.length - 1)]?.()) ?? { resourceVersion: "0", items: [] };
    },
    watch: (_type: unknown, { resourceVersion }: { readonly resourceVersion: string }, signal: AbortSignal) => {
      asked.push(`watch ${resourceVersion}`);
      return watches[watched++]?.(resourceVersion) ?? silence(signal);
    },
  } as unknown as KubeApi;
  return { api, asked };
}

async function* silence(signal: AbortSignal): AsyncGenerator<WatchEvent> {
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

async function* events(...list: readonly WatchEvent[]): AsyncGenerator<WatchEvent> {
  yield* list;
}

const list =
  (resourceVersion: number, ...items: readonly KubeObject[]): (() => Promise<KubeList>) =>
  async () => ({ resourceVersion: String(resourceVersion), items });

async function run(api: KubeApi) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const informer = new Informer(CONFIG_MAPS, api, clock, silentLog);
  const changes: string[] = [];
  informer.onChange(({ key, before, after }) =>
    changes.push(`${key} ${before?.metadata.resourceVersion ?? "-"}>${after?.metadata.resourceVersion ?? "-"}`),
  );
  const done = informer.run(stop.signal);
  await clock.settle();
  return { clock, informer, changes, end: async () => (stop.abort(), await done) };
}

test("a watch that ends is reopened from the last version seen, bookmarks included", async () => {
  const { api, asked } = scripted(
    [list(5, object("a", 3))],
    [
      () => events({ type: "MODIFIED", object: object("a", 6) }, { type: "BOOKMARK", resourceVersion: "9" }),
      () => events({ type: "DELETED", object: object("a", 10) }),
    ],
  );
  const { informer, changes, end } = await run(api);

  expect(asked).toEqual(["list", "watch 5", "watch 9", "watch 10"]);
  expect(changes).toEqual(["default/a ->3", "default/a 3>6", "default/a 6>-"]);
  expect(informer.size).toBe(0);
  await end();
});

test("after a 410 it lists anew, and what vanished meanwhile is told", async () => {
  const gone: WatchEvent = { type: "ERROR", status: { code: 410, reason: "Expired" } };
  const { api, asked } = scripted([list(5, object("a", 3), object("b", 4)), list(20, object("b", 12))], [() => events(gone)]);
  const { changes, end } = await run(api);

  expect(asked).toEqual(["list", "watch 5", "list", "watch 20"]);
  expect(changes.slice(2)).toEqual(["default/a 3>-", "default/b 4>12"]);
  await end();
});

test("a list that fails is tried again after growing delays", async () => {
  const fail = async (): Promise<KubeList> => {
    throw new KubeApiError({ code: 503, message: "down" }, "list");
  };
  const { api, asked } = scripted([fail, fail, list(5, object("a", 3))], []);
  const { clock, informer, end } = await run(api);
  expect(asked).toEqual(["list"]);
  await clock.advance(100);
  expect(asked).toEqual(["list", "list"]);
  await clock.advance(200);

  expect(asked).toEqual(["list", "list", "list", "watch 5"]);
  expect(informer.get("default/a")).toEqual(object("a", 3));
  await end();
});

test("an own write is seen at once, and older news of it is ignored", async () => {
  const later = Promise.withResolvers<void>();
  async function* late(): AsyncGenerator<WatchEvent> {
    await later.promise;
    yield* events({ type: "MODIFIED", object: object("a", 6) }, { type: "MODIFIED", object: object("a", 7) });
  }
  const { api } = scripted([list(5, object("a", 3))], [late]);
  const { clock, informer, changes, end } = await run(api);
  informer.observe(object("a", 7));
  later.resolve();
  await clock.settle();

  expect(changes).toEqual(["default/a ->3", "default/a 3>7"]);
  await end();
});

test("what is known to be deleted does not come back with older news, and its successor of the same name does", async () => {
  const later = Promise.withResolvers<void>();
  async function* late(): AsyncGenerator<WatchEvent> {
    await later.promise;
    yield* events(
      { type: "MODIFIED", object: object("a", 6, "first") },
      { type: "DELETED", object: object("a", 7, "first") },
      { type: "ADDED", object: object("a", 8, "second") },
    );
  }
  const { api } = scripted([list(5, object("a", 3, "first"))], [late]);
  const { clock, informer, changes, end } = await run(api);
  informer.forget("default/a", "first");
  later.resolve();
  await clock.settle();

  expect(changes).toEqual(["default/a ->3", "default/a 3>-", "default/a ->8"]);
  informer.observe(object("b", 7)); // its creation was answered after its deletion was seen
  expect(informer.get("default/b")).toBeUndefined();
  await end();
});

test("a list does not undo what was written while its pages came in", async () => {
  const listing = Promise.withResolvers<void>();
  const slow = async (): Promise<KubeList> => {
    await listing.promise;
    return { resourceVersion: "5", items: [object("a", 3)] };
  };
  const { api } = scripted([slow], []);
  const { clock, informer, end } = await run(api);
  informer.observe(object("a", 6));
  informer.observe(object("b", 7));
  listing.resolve();
  await clock.settle();

  expect([informer.get("default/a"), informer.get("default/b")]).toEqual([object("a", 6), object("b", 7)]);
  await end();
});
