import { expect, test } from "vitest";
import { kubeApiContract } from "../../../test/contracts/kube-api.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { PODS } from "../../kube/resources.ts";
import { directKubeApi } from "./direct-api.ts";
import { aPod, storeForTest } from "./store-for-test.ts";

kubeApiContract("direct", async () => {
  const clock = new VirtualClock();
  const store = storeForTest({ clock });
  return {
    api: directKubeApi(store),
    advance: (ms) => clock.advance(ms),
    forgetHistory: () => store.forgetHistory(),
    close: async () => expect(store.watcherCount).toBe(0),
  };
});

test("objects that come out are deeply frozen", async () => {
  const api = directKubeApi(storeForTest());
  const created = await api.create(PODS, aPod("p"));

  expect(() => {
    (created["spec"] as { containers: { image: string }[] }).containers[0]!.image = "changed";
  }).toThrow(TypeError);
});

test("a consumer that falls too far behind finds its watch ended and loses nothing that it was not told", async () => {
  const store = storeForTest({ windowSize: 50_000 });
  const api = directKubeApi(store);
  const watch = api.watch(PODS, { resourceVersion: String(store.revision) }, new AbortController().signal)[Symbol.asyncIterator]();
  const first = watch.next();
  for (let index = 0; index < 10_010; index += 1) await api.create(PODS, aPod(`p${index}`));
  let heard = (await first).done ? 0 : 1;
  while (!(await watch.next()).done) heard += 1;

  expect(heard).toBe(10_001); // one that it waited for, and a full queue
  expect(store.watcherCount).toBe(0);
});
