/** Replicas of the controller over the object store of the embedded cluster, under a virtual clock. */
import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { directKubeApi } from "../embedded/store/direct-api.ts";
import { storeForTest } from "../embedded/store/store-for-test.ts";
import type { KubeApi } from "./api.ts";
import { ControllerMembers } from "./election.ts";
import { LEASES } from "./resources.ts";

function world() {
  const clock = new VirtualClock();
  const api = directKubeApi(storeForTest({ clock }));
  const replica = (id: string) => {
    const told: (readonly string[])[] = [];
    const cut: Cut = { isCut: false, hangingLists: 0 };
    const options = {
      api: cuttable(api, clock, cut),
      namespace: "default",
      id,
      apiUrl: `http://${id}:7000`,
      clock,
      random: { next: () => 0.5 },
    };
    const members = new ControllerMembers({ ...options, log: () => undefined });
    members.onChange((live) => told.push(live.map((each) => each.id)));
    return { members, told, cut, live: () => members.live().map((each) => each.id) };
  };
  return { clock, api, replica };
}

interface Cut {
  isCut: boolean;
  /** So many of its next lists are answered half a minute late, as over a connection that hangs. */
  hangingLists: number;
}

/** A cut replica gets no answer, and nothing that it sends arrives. */
function cuttable(api: KubeApi, clock: VirtualClock, cut: Cut): KubeApi {
  const through =
    <A extends readonly unknown[], R>(call: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      cut.isCut ? Promise.reject(new RelevoError("kube_unreachable", "cut", { class: "retryable" })) : call(...args);
  return {
    ...api,
    list: through(async (...args) => {
      const answer = await api.list(...args);
      if (cut.hangingLists-- > 0) await clock.sleep(30_000);
      return answer;
    }),
    create: through((...args) => api.create(...args)),
    patch: through((...args) => api.patch(...args)),
    delete: through((...args) => api.delete(...args)),
    async *watch(type, options, signal) {
      for await (const event of api.watch(type, options, signal)) {
        if (cut.isCut) throw new RelevoError("kube_unreachable", "cut", { class: "retryable" });
        yield event;
      }
    },
  };
}

test("replicas find one another, and a clean stop is seen at once", async () => {
  const { clock, api, replica } = world();
  const [a, b, c] = [replica("a"), replica("b"), replica("c")];
  for (const each of [a, b, c]) each.members.start();
  await clock.advance(1_000);
  expect([a.live(), b.live(), c.live()]).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
  expect(a.members.live()[1]).toEqual({ id: "b", api: "http://b:7000" });
  const lease = await api.get({ type: LEASES, namespace: "default", name: "relevo-controller-a" });
  expect(lease["spec"]).toEqual({
    holderIdentity: "a",
    leaseDurationSeconds: 4,
    acquireTime: "2030-01-01T00:00:00.000000Z",
    renewTime: "2030-01-01T00:00:01.000000Z",
  });

  await b.members.stop();
  await clock.advance(10);
  expect([a.live(), c.live()]).toEqual([
    ["a", "c"],
    ["a", "c"],
  ]);
  await Promise.all([a.members.stop(), c.members.stop()]);
  expect((await api.list(LEASES, { namespace: "default" })).items).toEqual([]);
});

test("a replica that is cut off or killed is dead for the others within five seconds, and a member again when it is back", async () => {
  const { clock, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) each.members.start();
  await clock.advance(20_500);
  b.cut.isCut = true;
  await clock.advance(3_000);
  expect(a.live()).toEqual(["a", "b"]);
  await clock.advance(2_000);
  expect(a.live()).toEqual(["a"]);
  expect(b.live()).toEqual(["a", "b"]); // it cannot know, and what it does is refused by the store
  b.cut.isCut = false;
  await clock.advance(2_000);
  expect([a.live(), b.live(), a.told]).toEqual([
    ["a", "b"],
    ["a", "b"],
    [["a", "b"], ["a"], ["a", "b"]],
  ]);
  await Promise.all([a.members.stop(), b.members.stop()]);
});

test("a list that hangs delays nobody's death, and is no news when it is answered at last", async () => {
  const { clock, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) each.members.start();
  await clock.advance(9_500);
  a.cut.hangingLists = 1; // the one of every ten seconds
  await clock.advance(1_000);
  b.cut.isCut = true;
  await clock.advance(7_000);
  expect(a.live()).toEqual(["a"]);
  await clock.advance(60_000);
  expect(a.told).toEqual([["a", "b"], ["a"]]);
  await Promise.all([a.members.stop(), b.members.stop()]);
});

test("the API server away for ten minutes changes no membership", async () => {
  const { clock, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) each.members.start();
  await clock.advance(5_000);
  for (const each of [a, b]) each.cut.isCut = true;
  await clock.advance(600_000);
  expect([a.members.failing(), a.live(), b.live()]).toEqual(["kube_unreachable", ["a", "b"], ["a", "b"]]);
  for (const each of [a, b]) each.cut.isCut = false;
  await clock.advance(30_000);
  expect([a.members.failing(), a.told, b.told]).toEqual([undefined, [["a", "b"]], [["a", "b"]]]);
  await Promise.all([a.members.stop(), b.members.stop()]);
});

test("a Lease that somebody deletes is made anew, and one that nobody renews is removed after ten minutes", async () => {
  const { clock, api, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) each.members.start();
  await clock.advance(5_000);
  await api.delete({ type: LEASES, namespace: "default", name: "relevo-controller-a" });
  await clock.advance(1_500);
  expect(b.live()).toEqual(["a", "b"]);

  b.cut.isCut = true;
  await clock.advance(9 * 60_000);
  expect((await api.list(LEASES, { namespace: "default" })).items).toHaveLength(2);
  await clock.advance(2 * 60_000);
  expect((await api.list(LEASES, { namespace: "default" })).items.map(({ metadata }) => metadata.name)).toEqual(["relevo-controller-a"]);
  await Promise.all([a.members.stop(), b.members.stop()]);
});

test("a replica's version is on its Lease and known to the others (D17); one that says none has none", async () => {
  const clock = new VirtualClock();
  const api = directKubeApi(storeForTest({ clock }));
  const common = { api, namespace: "default", clock, random: { next: () => 0.5 }, log: () => undefined };
  const a = new ControllerMembers({ ...common, id: "a", apiUrl: "http://a:7000", version: "0.2.0" });
  const b = new ControllerMembers({ ...common, id: "b", apiUrl: "http://b:7000" });
  a.start();
  b.start();
  await clock.advance(1_000);
  const expected = [
    { id: "a", api: "http://a:7000", version: "0.2.0" },
    { id: "b", api: "http://b:7000" },
  ];
  expect([a.live(), b.live()]).toEqual([expected, expected]);
  const lease = await api.get({ type: LEASES, namespace: "default", name: "relevo-controller-a" });
  expect(lease.metadata.annotations).toEqual({ "relevo.dev/api": "http://a:7000", "relevo.dev/version": "0.2.0" });
  await Promise.all([a.stop(), b.stop()]);
});
