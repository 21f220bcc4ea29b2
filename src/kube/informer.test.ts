import * as fc from "fast-check";
import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { KubeObject } from "./api.ts";
import { type Change, createInformer, type Informer, type InformerOptions } from "./informer.ts";
import { FakeServer, summary } from "./reflector-fake.ts";
import type { ResourceType } from "./api.ts";

const THINGS: ResourceType = { group: "", version: "v1", kind: "Thing", plural: "things", namespaced: true };

interface World {
  readonly clock: VirtualClock;
  readonly server: FakeServer;
  readonly informer: Informer<KubeObject>;
  readonly changes: Change<KubeObject>[];
  readonly logged: string[];
}

function world(options: Partial<InformerOptions<KubeObject>> = {}): World {
  const clock = new VirtualClock();
  const server = new FakeServer(clock);
  const changes: Change<KubeObject>[] = [];
  const logged: string[] = [];
  const informer = createInformer<KubeObject>({
    api: server.api(),
    type: THINGS,
    clock,
    random: { next: () => 0.5 },
    log: (_level, message) => logged.push(message),
    parse: (object) => ({ ok: true, value: object }),
    reflector: { pageSize: 3 },
    ...options,
  });
  informer.onChange((change) => changes.push(change));
  return { clock, server, informer, changes, logged };
}

const copyOf = (informer: Informer<KubeObject>): readonly string[] => informer.list().map(summary).toSorted();
const told = (changes: readonly Change<KubeObject>[]): readonly string[] =>
  changes.map(
    ({ name, before, after, gone }) =>
      `${name} ${before === undefined ? "-" : "+"}→${after === undefined ? "-" : "+"}${gone ? " gone" : ""}`,
  );

test("lists in pages, then follows the watch", async () => {
  const { clock, server, informer, changes } = world();
  for (const name of ["a", "b", "c", "d", "e"]) server.put(name);
  informer.start();
  expect(informer.synced()).toBe(false);

  await clock.advance(100);
  expect([informer.synced(), server.lists, copyOf(informer)]).toEqual([true, 2, server.names()]);

  changes.length = 0;
  server.put("a");
  server.delete("b");
  server.put("f");
  await clock.advance(0);
  expect(told(changes)).toEqual(["a +→+", "b +→- gone", "f -→+"]);
  expect(copyOf(informer)).toEqual(server.names());
});

test("a watch that ends in order is opened again at once from the last version, bookmarks included", async () => {
  const { clock, server, informer } = world();
  informer.start();
  await clock.advance(2_000);
  server.put("a");
  server.bookmark();
  await clock.advance(0);
  server.endWatches();
  await clock.advance(0);
  expect({ lists: server.lists, watches: server.watches, open: server.openWatches, failing: informer.state().failing }).toEqual({
    lists: 1,
    watches: 2,
    open: 1,
    failing: undefined,
  });
});

test.each(["thrown", "event"] as const)(
  "a version that is too old (410 %s) lists anew, and what went meanwhile is told as gone",
  async (goneAs) => {
    const { clock, server, informer, changes } = world();
    server.goneAs = goneAs;
    server.put("a");
    server.put("b");
    informer.start();
    await clock.advance(2_000);
    changes.length = 0;
    server.isCut = true;
    server.breakWatches();
    await clock.advance(0);
    server.delete("a");
    server.put("c");
    server.compact();
    server.isCut = false;
    await clock.advance(60_000);
    expect(told(changes)).toEqual(["a +→- gone", "c -→+"]);
    expect([copyOf(informer), informer.state().failing]).toEqual([server.names(), undefined]);
  },
);

test("an object of the same name with another UID is told as a removal and an addition", async () => {
  const { clock, server, informer, changes } = world();
  server.put("a");
  informer.start();
  await clock.advance(2_000);
  changes.length = 0;
  server.silenceWatches();
  server.delete("a");
  server.put("a");
  await clock.advance(200_000);
  expect(told(changes)).toEqual(["a +→- gone", "a -→+"]);
});

test("with a selector, DELETED is no proof that the object is gone", async () => {
  const { clock, server, informer, changes } = world({ labelSelector: "side=in" });
  server.put("a", "in");
  informer.start();
  await clock.advance(2_000);
  server.put("a", "out");
  await clock.advance(0);
  server.put("a", "in");
  await clock.advance(0);
  expect(told(changes)).toEqual(["a -→+", "a +→-", "a -→+"]);
});

test("while the server is away the copy stays, the state says why, and calls are bounded by the back-off", async () => {
  const { clock, server, informer } = world();
  server.put("a");
  informer.start();
  await clock.advance(2_000);
  server.isCut = true;
  server.breakWatches();
  await clock.advance(600_000);
  expect({ copy: copyOf(informer), failing: informer.state().failing, synced: informer.synced() }).toEqual({
    copy: server.names(),
    failing: "connection_broken",
    synced: true,
  });
  expect(informer.state().since).toBe(clock.now() - 600_000);
  expect(server.watches).toBeLessThan(45);

  server.isCut = false;
  server.put("b");
  await clock.advance(35_000);
  expect([copyOf(informer), informer.state().failing]).toEqual([server.names(), undefined]);
});

test("a silent watch is taken for dead: opened again, and listed anew when it never said a word", async () => {
  const { clock, server, informer } = world();
  informer.start();
  await clock.advance(2_000);
  server.put("a");
  await clock.advance(0);
  server.silenceWatches();
  server.put("b");
  await clock.advance(91_000);
  expect([server.lists, server.watches, copyOf(informer)]).toEqual([1, 2, server.names()]);
  await clock.advance(91_000);
  expect(server.lists).toBe(1);
});

test("a malformed object counts as absent and is named; it is back once it is well (D9)", async () => {
  const { clock, server, informer, changes, logged } = world({
    parse: (object) => (object.metadata.labels?.["side"] === "bad" ? { ok: false, problem: "side: bad" } : { ok: true, value: object }),
  });
  server.put("a");
  server.put("b");
  informer.start();
  await clock.advance(2_000);
  changes.length = 0;
  server.put("a", "bad");
  await clock.advance(0);
  expect(informer.get("default", "a")).toBeUndefined();
  expect(informer.problems()).toEqual([{ namespace: "default", name: "a", uid: "uid-1", problem: "side: bad" }]);
  expect(informer.state().malformed).toBe(1);
  expect(logged.at(-1)).toBe("things: is malformed and counts as absent");
  server.put("a");
  await clock.advance(0);
  expect([told(changes), informer.problems()]).toEqual([["a +→-", "a -→+"], []]);
});

test("a parser that throws and a listener that throws harm nobody else", async () => {
  const { clock, server, informer, changes } = world({
    parse: (object) => {
      if (object.metadata.name === "bad") throw new Error("boom");
      return { ok: true, value: object };
    },
  });
  informer.onChange(() => {
    throw new Error("listener");
  });
  server.put("bad");
  server.put("good");
  informer.start();
  await clock.advance(2_000);
  expect([copyOf(informer), informer.problems().map((each) => each.name), changes.length]).toEqual([["good/uid-2/3"], ["bad"], 2]);
});

test("indexes follow the objects", async () => {
  const { clock, server, informer } = world({ indexes: { side: (object) => [object.metadata.labels?.["side"] ?? ""] } });
  server.put("a", "left");
  server.put("b", "left");
  informer.start();
  await clock.advance(2_000);
  server.put("a", "right");
  server.delete("b");
  await clock.advance(0);
  expect([informer.byIndex("side", "left"), informer.byIndex("side", "right").map(summary)]).toEqual([[], ["a/uid-1/4"]]);
});

test("DELETED of another UID than the one that is there changes nothing", async () => {
  const thing = (uid: string, resourceVersion: string): KubeObject => ({
    apiVersion: "v1",
    kind: "Thing",
    metadata: { name: "a", uid, resourceVersion, creationTimestamp: "2030-01-01T00:00:00Z" },
  });
  const { clock, informer, changes } = world({
    api: {
      ...new FakeServer(new VirtualClock()).api(),
      list: async () => ({ resourceVersion: "5", items: [thing("new", "4")] }),
      watch: async function* (_type, _options, signal) {
        yield { type: "DELETED", object: thing("old", "6") };
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    },
  });
  informer.start();
  await clock.advance(2_000);
  expect([copyOf(informer), told(changes)]).toEqual([["a/new/4"], ["a -→+"]]);
  informer.stop();
});

test("no change is told before the whole swap is done", async () => {
  const { clock, server, informer } = world();
  const sizes: number[] = [];
  informer.onChange(() => sizes.push(informer.list().length));
  for (const name of ["a", "b", "c", "d"]) server.put(name);
  informer.start();
  await clock.advance(2_000);
  expect(sizes).toEqual([4, 4, 4, 4]);
});

test("more objects than the limit are refused, the copy stays, and the state says so", async () => {
  const { clock, server, informer } = world({ reflector: { maxObjects: 2 } });
  server.put("a");
  server.put("b");
  informer.start();
  await clock.advance(2_000);
  server.put("c");
  await clock.advance(1_000);
  expect([copyOf(informer).length, informer.state().failing, server.openWatches]).toEqual([2, "too_many_objects", 0]);
  server.delete("a");
  await clock.advance(40_000);
  expect([copyOf(informer), informer.state().failing]).toEqual([server.names(), undefined]);
});

test("stopping closes the watch and leaves no timer; a listener may stop it", async () => {
  const { clock, server, informer } = world();
  informer.onChange(() => informer.stop());
  informer.start();
  await clock.advance(2_000);
  server.put("a");
  await clock.advance(0);
  expect([server.openWatches, clock.pendingTimers]).toEqual([0, 0]);
  server.put("b");
  await clock.advance(100_000);
  expect(copyOf(informer)).toEqual(["a/uid-1/2"]);
});

type Command =
  | { readonly do: "put" | "delete"; readonly name: string; readonly label: string }
  | { readonly do: Fault }
  | { readonly do: "pass"; readonly ms: number };
const FAULTS = ["compact", "expire", "break", "end", "silence", "bookmark", "failList", "cut", "heal", "goneThrown", "goneEvent"] as const;
type Fault = (typeof FAULTS)[number];

const aCommand: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("put" as const, "delete" as const),
      name: fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"),
      label: fc.constantFrom("in", "out"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom(...FAULTS) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(0, 1, 6, 300, 5_000, 95_000) }) },
);

async function run(command: Command, { server, clock }: World): Promise<void> {
  switch (command.do) {
    case "put":
      return server.put(command.name, command.label);
    case "delete":
      return server.delete(command.name);
    case "pass":
      return clock.advance(command.ms);
    case "compact":
      return server.compact();
    case "expire":
      return server.expireWatches();
    case "break":
      return server.breakWatches();
    case "end":
      return server.endWatches();
    case "silence":
      return server.silenceWatches();
    case "bookmark":
      return server.bookmark();
    case "failList":
      server.failLists = 2;
      return;
    case "cut":
      server.isCut = true;
      return server.breakWatches();
    case "heal":
      server.isCut = false;
      return;
    case "goneThrown":
      server.goneAs = "thrown";
      return;
    case "goneEvent":
      server.goneAs = "event";
      return;
    default:
      command satisfies never;
  }
}

test.each([undefined, "side=in"])(
  "whatever happens on the way, the copy converges to the server's state, and the changes told add up to it (selector %s)",
  async (labelSelector) => {
    await fc.assert(
      fc.asyncProperty(fc.array(aCommand, { maxLength: 60 }), async (commands) => {
        const here = world({ labelSelector });
        here.informer.start();
        for (const command of commands) await run(command, here);
        here.server.isCut = false;
        here.server.failLists = 0;
        await here.clock.advance(400_000);

        expect(copyOf(here.informer)).toEqual(here.server.names(labelSelector));
        expect(here.informer.state().failing).toBeUndefined();
        expect(here.server.openWatches).toBe(1);
        const added = new Map<string, KubeObject>();
        for (const { name, uid, before, after } of here.changes) {
          expect(added.get(name)?.metadata.uid ?? uid).toBe(uid);
          expect(before).toEqual(added.get(name));
          if (after === undefined) added.delete(name);
          else added.set(name, after);
        }
        expect([...added.values()].map(summary).toSorted()).toEqual(here.server.names(labelSelector));
        here.informer.stop();
        await here.clock.settle();
        expect(here.clock.pendingTimers).toBe(0);
      }),
      { numRuns: 200 },
    );
  },
);
