import { expect, test } from "vitest";
import type { Informer } from "../kube/informer.ts";
import { openStore } from "../store/store.ts";
import { onlyMember } from "./members.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { listControllers } from "./replicas-desk.ts";

const NOON = Date.UTC(2030, 0, 1, 12);

/** Only what the list is made of. */
function poolsOf(...keys: readonly string[]): Informer<PoolEntry> {
  return { list: () => keys.map((key) => ({ key })) } as unknown as Informer<PoolEntry>;
}

test("which replica has which pools costs one read of the store, however many there are; no row of a pool is read for it", async () => {
  const store = await openStore({ path: ":memory:" });
  await store.claim("shop/b", "here", NOON);
  await store.claim("shop/a", "here", NOON);
  await store.claim("shop/c", "gone", NOON);
  await store.letGo(await store.claim("shop/free", "here", NOON));
  await store.claim("shop/without-a-document", "here", NOON);
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get(target, name: keyof typeof store) {
      const member = target[name];
      return (...input: unknown[]) => {
        calls.push(name);
        return Reflect.apply(member, target, input) as unknown;
      };
    },
  });
  const pools = poolsOf("shop/a", "shop/b", "shop/c", "shop/free", "shop/new");

  expect(await listControllers({ members: onlyMember("here", "http://here"), pools, store: counted })).toEqual([
    { id: "gone", api: null, isSelf: false, isLive: false, pools: ["shop/c"] },
    { id: "here", api: "http://here", isSelf: true, isLive: true, pools: ["shop/a", "shop/b"] },
  ]);
  expect(calls).toEqual(["poolOwners"]);
  await store.close();
});
