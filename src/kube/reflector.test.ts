import * as fc from "fast-check";
import { expect, test } from "vitest";
import { KubeApiError, type KubeObject, type WatchEvent } from "./api.ts";
import { failureOf, initialState, step } from "./reflector.ts";
import type { Effect, Failure, ReflectorConfig, ReflectorEvent, ReflectorState } from "./reflector-types.ts";
import { RelevoError } from "../kernel/errors.ts";

const BROKEN: Failure = { code: "connection_broken", gone: false, refused: false };
const GONE: Failure = { code: "kube_expired", gone: true, refused: true };

function object(name: string, resourceVersion: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Thing",
    metadata: { name, uid: `uid-${name}`, resourceVersion, creationTimestamp: "2030-01-01T00:00:00Z" },
  };
}

/** Runs a script and writes down what is asked for: one line per effect. */
class Script {
  state: ReflectorState;
  at = 0;
  jitter = 1;
  transcript: string[] = [];
  staged: readonly string[] = [];

  constructor(config: Partial<ReflectorConfig> = {}) {
    this.state = initialState(config);
  }

  say(event: ReflectorEvent): this {
    const { state, effects } = step(this.state, event, { at: this.at, jitter: this.jitter });
    this.state = state;
    this.transcript.push(...effects.flatMap((effect) => this.#describe(effect)));
    return this;
  }

  page(version: string, items: readonly KubeObject[] = [], next?: string): this {
    return this.say({ type: "page", list: this.#id("list"), page: { resourceVersion: version, items, continue: next } });
  }

  failList(failure: Failure): this {
    return this.say({ type: "list_failed", list: this.#id("list"), failure });
  }

  line(line: WatchEvent): this {
    return this.say({ type: "line", watch: this.#id("watch"), line });
  }

  end(): this {
    return this.say({ type: "watch_ended", watch: this.#id("watch") });
  }

  fail(failure: Failure): this {
    return this.say({ type: "watch_failed", watch: this.#id("watch"), failure });
  }

  /** The timer fires. */
  wake(afterMs: number): this {
    this.at += afterMs;
    return this.say({ type: "waited", timer: this.#id("timer") });
  }

  /** What was asked for since the last call. */
  asked(): readonly string[] {
    const said = this.transcript;
    this.transcript = [];
    return said;
  }

  /** What is staged is shown when it is swapped in. */
  #describe(effect: Effect): readonly string[] {
    switch (effect.type) {
      case "list_page":
        return [`list limit=${effect.limit ?? "none"} continue=${effect.continue ?? "none"}`];
      case "open_watch":
        return [effect.version === null ? "stream" : `watch from ${effect.version}`];
      case "close_watch":
        return ["close"];
      case "wait":
        return [`wait ${effect.ms}`];
      case "unstage":
        this.staged = [];
        return [];
      case "stage":
        this.staged = [...this.staged, ...effect.objects.map(({ metadata }) => metadata.name)];
        return [];
      case "stage_removal":
        this.staged = this.staged.filter((name) => name !== effect.object.metadata.name);
        return [];
      case "deliver":
        return [
          effect.change.kind === "replace"
            ? `replace ${this.staged.join(",")}`
            : `${effect.change.kind} ${effect.change.object.metadata.name}`,
        ];
      case "synced":
        return [`synced ${effect.version}`];
      case "failing":
        return [`failing ${effect.code} ${effect.failures}`];
      case "recovered":
        return ["recovered"];
      default:
        return effect satisfies never;
    }
  }

  #id(name: "list" | "watch" | "timer"): number {
    const { phase } = this.state;
    return Object.hasOwn(phase, name) ? ((phase as unknown as Record<string, number>)[name] ?? -1) : -1;
  }
}

function watching(config: Partial<ReflectorConfig> = {}): Script {
  const script = new Script(config).say({ type: "start" }).page("10").wake(1_000);
  script.asked();
  return script;
}

test("lists in pages, swaps once, and watches from the list's version", () => {
  const script = new Script({ pageSize: 2 }).say({ type: "start" });
  expect(script.asked()).toEqual(["list limit=2 continue=none", "wait 60000"]);
  expect(script.page("10", [object("a", "1"), object("b", "2")], "more").asked()).toEqual(["list limit=2 continue=more", "wait 60000"]);
  expect(script.page("10", [object("c", "3")]).asked()).toEqual(["replace a,b,c", "synced 10", "watch from 10", "wait 1000"]);
});

test("a continue token that expired starts the list anew at once, then after a delay, then in one piece", () => {
  const script = new Script({ pageSize: 2 }).say({ type: "start" }).page("10", [object("a", "1")], "more");
  script.asked();
  expect(script.failList(GONE).asked()).toEqual(["list limit=2 continue=none", "wait 60000"]);
  expect(
    script
      .page("20", [object("a", "1")], "more")
      .failList(GONE)
      .asked()
      .slice(2),
  ).toEqual(["failing kube_expired 2", "wait 400"]);
  expect(script.wake(400).asked()).toEqual(["list limit=none continue=none", "wait 60000"]);
  expect(script.page("30", [object("a", "1")]).asked()).toEqual(["replace a", "synced 30", "recovered", "watch from 30", "wait 1000"]);
});

test("a later page of another version is no part of the snapshot: the list starts anew", () => {
  const script = new Script({ pageSize: 1 }).say({ type: "start" }).page("10", [object("a", "1")], "more");
  script.asked();
  expect(script.page("11", [object("b", "2")]).asked()).toEqual(["list limit=1 continue=none", "wait 60000"]);
});

test("a list that fails backs off, doubling up to the limit, and keeps nothing of it", () => {
  const script = new Script({ backoffFirstMs: 100, backoffMaxMs: 500 }).say({ type: "start" });
  script.asked();
  const waits = [1, 2, 3, 4, 5].map(() => script.failList(BROKEN).wake(0).asked()[1]);
  expect(waits).toEqual(["wait 100", "wait 200", "wait 400", "wait 500", "wait 500"]);
});

test("a page that does not come in time counts as failed, and comes too late", () => {
  const script = new Script().say({ type: "start" });
  const late = script.state;
  expect(script.wake(60_000).asked().slice(2)).toEqual(["failing list_timeout 1", "wait 200"]);
  expect(late.phase.name).toBe("listing");
  expect(script.say({ type: "page", list: 1, page: { resourceVersion: "10", items: [] } }).asked()).toEqual([]);
});

test("changes are delivered as they come, and an ordinary end goes on from the last version, a bookmark's too", () => {
  const script = watching();
  script
    .line({ type: "ADDED", object: object("a", "11") })
    .line({ type: "DELETED", object: object("a", "12") })
    .line({ type: "BOOKMARK", resourceVersion: "40" })
    .end();
  expect(script.asked()).toEqual(["put a", "remove a", "watch from 40", "wait 1000"]);
});

test.each([
  ["thrown", (script: Script) => script.fail(GONE), ["list limit=500 continue=none", "wait 60000"]],
  [
    "as an ERROR event",
    (script: Script) => script.line({ type: "ERROR", status: { code: 410, reason: "Expired" } }),
    ["close", "list limit=500 continue=none", "wait 60000"],
  ],
  [
    "as an ERROR event of reason Gone",
    (script: Script) => script.line({ type: "ERROR", status: { code: 410, reason: "Gone" } }),
    ["close", "list limit=500 continue=none", "wait 60000"],
  ],
])("410 %s lists anew at once", (_how, happen, expected) => {
  expect(happen(watching()).asked()).toEqual(expected);
});

test("a server that answers each watch with 410 is not called in a loop", () => {
  const script = watching();
  script.fail(GONE).page("11").fail(GONE);
  expect(script.asked().slice(-2)).toEqual(["failing kube_expired 2", "wait 400"]);
});

test("a broken watch is opened again after a delay from the last version; the delay is jittered between half and whole", () => {
  const script = watching();
  script.line({ type: "BOOKMARK", resourceVersion: "20" });
  script.jitter = 0;
  expect(script.fail(BROKEN).asked()).toEqual(["failing connection_broken 1", "wait 100"]);
  expect(script.wake(100).asked()).toEqual(["watch from 20", "wait 1000"]);
  script.jitter = 1;
  expect(script.fail(BROKEN).asked()).toEqual(["failing connection_broken 2", "wait 400"]);
});

test("it has recovered once a watch said something or lasted", () => {
  const broken = (): Script => {
    const script = watching().fail(BROKEN).wake(200);
    script.asked();
    return script;
  };
  expect(broken().line({ type: "BOOKMARK", resourceVersion: "20" }).asked()).toEqual(["recovered"]);
  expect(broken().wake(1_000).asked()).toEqual(["recovered", "wait 89000"]);
});

test("a watch that ends at once without a word counts as a failure, later it does not", () => {
  const script = new Script().say({ type: "start" }).page("10");
  script.asked();
  expect(script.end().asked()).toEqual(["failing watch_ended_early 1", "wait 200"]);
  script.wake(200).wake(1_000);
  script.asked();
  expect(script.end().asked()).toEqual(["watch from 10", "wait 1000"]);
});

test("a silent watch is opened again; one that never said a word, as of a server that was rewound, is listed anew", () => {
  const script = watching();
  script.at = 30_000;
  script.line({ type: "BOOKMARK", resourceVersion: "20" });
  script.at = 0;
  expect(script.wake(90_000).asked()).toEqual(["wait 30000"]);
  expect(script.wake(30_000).asked()).toEqual(["close", "watch from 20", "wait 1000"]);
  expect(script.wake(1_000).wake(89_000).asked()).toEqual(["wait 89000", "close", "list limit=500 continue=none", "wait 60000"]);
});

test("what the server refuses as such is not asked again: it lists anew after a delay", () => {
  const script = watching().fail(failureOf(new KubeApiError({ code: 400, reason: "BadRequest" }, "watch")));
  expect(script.asked()).toEqual(["failing kube_bad_request 1", "wait 200"]);
  expect(script.wake(200).asked()).toEqual(["list limit=500 continue=none", "wait 60000"]);
});

test("an error event that is no 410 opens the watch again from where it was", () => {
  const script = watching().line({ type: "ERROR", status: { code: 500, reason: "InternalError" } });
  expect(script.asked()).toEqual(["close", "failing kube_internal_error 1", "wait 200"]);
  expect(script.wake(200).asked()).toEqual(["watch from 10", "wait 1000"]);
});

test("the server's Retry-After is honoured within the limit", () => {
  const busy = (retryAfterSeconds: number): Failure =>
    failureOf(new KubeApiError({ code: 429, reason: "TooManyRequests", details: { retryAfterSeconds } }, "list"));
  const waits = [7, 3_600].map((seconds) => new Script().say({ type: "start" }).failList(busy(seconds)).asked().at(-1));
  expect(waits).toEqual(["wait 7000", "wait 30000"]);
});

test("an answer without names or versions is no answer", () => {
  const nameless = { apiVersion: "v1", kind: "Thing", metadata: { uid: "u", resourceVersion: "1" } } as unknown as KubeObject;
  expect(new Script().say({ type: "start" }).page("").asked().at(-2)).toBe("failing malformed_answer 1");
  expect(new Script().say({ type: "start" }).page("1", [nameless]).asked().at(-2)).toBe("failing malformed_answer 1");
  expect(watching().line({ type: "ADDED", object: nameless }).asked()).toEqual(["close", "failing malformed_answer 1", "wait 200"]);
  expect(
    watching()
      .line({ type: "ADDED", object: { apiVersion: "v1" } as unknown as KubeObject })
      .asked(),
  ).toEqual(["close", "failing malformed_answer 1", "wait 200"]);
  expect(watching().line({ type: "BOOKMARK", resourceVersion: "" }).asked()).toEqual(["close", "failing malformed_answer 1", "wait 200"]);
});

test("a kind that is not installed is an error, and for an optional kind it means that there is nothing, until it is installed", () => {
  const missing = failureOf(new KubeApiError({ code: 404, reason: "NotFound" }, "list"));
  expect(new Script().say({ type: "start" }).failList(missing).asked().slice(2)).toEqual(["failing kube_not_found 1", "wait 200"]);
  const script = new Script({ optional: true }).say({ type: "start" }).failList(missing);
  expect(script.asked().slice(2)).toEqual(["replace ", "synced ", "wait 30000"]);
  expect(
    script
      .wake(30_000)
      .page("10", [object("a", "1")])
      .asked()
      .slice(2),
  ).toEqual(["replace a", "synced 10", "watch from 10", "wait 1000"]);
  expect(script.wake(1_000).fail(missing).wake(200).failList(missing).asked().slice(1)).toEqual([
    "failing kube_not_found 1",
    "wait 200",
    "list limit=500 continue=none",
    "wait 60000",
    "replace ",
    "synced ",
    "recovered",
    "wait 30000",
  ]);
});

test("more objects than the limit are refused before they are delivered", () => {
  const script = new Script({ maxObjects: 1 }).say({ type: "start" }).page("1", [object("a", "1"), object("b", "1")]);
  expect(script.asked().slice(2)).toEqual(["failing too_many_objects 1", "wait 30000"]);
});

test("what comes from an older watch, list or timer, or after the stop, is dropped", () => {
  const script = watching();
  const before = script.state;
  script
    .say({ type: "line", watch: 1, line: { type: "BOOKMARK", resourceVersion: "99" } })
    .say({ type: "waited", timer: 1 })
    .say({ type: "start" });
  expect([script.state, script.asked()]).toEqual([before, []]);
  expect(script.say({ type: "stop" }).asked()).toEqual(["close"]);
  expect(script.wake(1).end().say({ type: "start" }).say({ type: "stop" }).asked()).toEqual([]);
});

const streaming = (): Script => new Script({ initialEvents: true, pageSize: 2 }).say({ type: "start" });
const MARK: WatchEvent = { type: "BOOKMARK", resourceVersion: "20", endsInitialEvents: true };

test("a watch that begins with all that is there replaces the list: one swap at the mark, and the same watch goes on", () => {
  const script = streaming();
  expect(script.asked()).toEqual(["stream", "wait 60000"]);
  script.line({ type: "ADDED", object: object("a", "1") }).line({ type: "ADDED", object: object("b", "2") });
  script.line({ type: "BOOKMARK", resourceVersion: "11" }).line({ type: "MODIFIED", object: object("b", "12") });
  script.line({ type: "DELETED", object: object("a", "13") }).line({ type: "ADDED", object: object("c", "14") });
  expect(script.asked()).toEqual([]);
  expect(script.line(MARK).asked()).toEqual(["replace b,b,c", "synced 20", "wait 1000"]);
  expect(script.line({ type: "DELETED", object: object("c", "21") }).asked()).toEqual(["remove c"]);
  expect(script.end().asked()).toEqual(["watch from 21", "wait 1000"]);
});

test("a server that refuses initial events, ends them early or never ends them is asked for lists from then on", () => {
  const refused: Failure = { code: "kube_invalid", gone: false, refused: true };
  const list = "list limit=2 continue=none";
  expect(streaming().fail(refused).asked()).toEqual(["stream", "wait 60000", list, "wait 60000"]);
  expect(streaming().end().asked()).toEqual(["stream", "wait 60000", list, "wait 60000"]);
  const silent = streaming().wake(60_000);
  expect(silent.asked().slice(2)).toEqual(["close", "failing initial_events_overdue 1", "wait 200"]);
  expect(silent.wake(200).page("10").fail(GONE).asked()).toEqual([
    list,
    "wait 60000",
    "replace ",
    "synced 10",
    "recovered",
    "watch from 10",
    "wait 1000",
    "failing kube_expired 2",
    "wait 400",
  ]);
});

test("a stream that breaks is opened again after a delay, three times; then lists are asked for", () => {
  const script = streaming()
    .line({ type: "ADDED", object: object("a", "1") })
    .fail(BROKEN);
  expect(script.asked().slice(2)).toEqual(["failing connection_broken 1", "wait 200"]);
  expect(script.wake(200).fail(BROKEN).wake(400).fail(BROKEN).asked()).toEqual([
    "stream",
    "wait 60000",
    "failing connection_broken 2",
    "wait 400",
    "stream",
    "wait 60000",
    "failing connection_broken 3",
    "wait 800",
  ]);
  expect(
    script
      .wake(800)
      .page("10", [object("b", "2")])
      .asked()
      .slice(0, 3),
  ).toEqual(["list limit=2 continue=none", "wait 60000", "replace b"]);
});

test("a stream that holds too much is closed and the copy stays; an optional kind that is not there is known to be empty", () => {
  const script = new Script({ initialEvents: true, maxObjects: 1 }).say({ type: "start" });
  script.line({ type: "ADDED", object: object("a", "1") }).line({ type: "ADDED", object: object("b", "2") });
  expect(script.asked().slice(2)).toEqual(["close", "failing too_many_objects 1", "wait 30000"]);
  const missing: Failure = { code: "kube_404", gone: false, refused: true, missing: true };
  const optional = new Script({ initialEvents: true, optional: true }).say({ type: "start" }).fail(missing);
  expect(optional.asked().slice(2)).toEqual(["replace ", "synced ", "wait 30000"]);
  expect(optional.wake(30_000).asked()).toEqual(["stream", "wait 60000"]);
});

test("410 after a stream begins another at once, the next one after a delay", () => {
  const script = streaming().line(MARK);
  script.asked();
  expect(script.line({ type: "ERROR", status: { code: 410, reason: "Expired" } }).asked()).toEqual(["close", "stream", "wait 60000"]);
  expect(script.line(MARK).fail(GONE).asked()).toEqual(["replace ", "synced 20", "wait 1000", "failing kube_expired 2", "wait 400"]);
});

test("a failure says whether only a new list helps", () => {
  expect([
    failureOf(new RelevoError("connection_broken", "reset", { class: "retryable" })),
    failureOf(new Error("?")),
    failureOf(new KubeApiError({ code: 403, reason: "Forbidden" }, "list")),
  ]).toEqual([
    { code: "connection_broken", gone: false, refused: false },
    { code: "watch_broken", gone: false, refused: false },
    { code: "kube_forbidden", gone: false, refused: true, missing: false, retryAfterMs: undefined },
  ]);
});

const anEvent: fc.Arbitrary<ReflectorEvent> = fc.oneof(
  fc.constantFrom<ReflectorEvent>({ type: "start" }, { type: "overflow" }),
  fc.record({
    type: fc.constant("page" as const),
    list: fc.nat(30),
    page: fc.record({
      resourceVersion: fc.constantFrom("1", "2", ""),
      continue: fc.constantFrom(undefined, "t"),
      items: fc.constant([object("a", "1")]),
    }),
  }),
  fc.record({ type: fc.constant("list_failed" as const), list: fc.nat(30), failure: fc.constantFrom(BROKEN, GONE) }),
  fc.record({
    type: fc.constant("line" as const),
    watch: fc.nat(30),
    line: fc.constantFrom<WatchEvent>(
      { type: "BOOKMARK", resourceVersion: "3" },
      { type: "BOOKMARK", resourceVersion: "3", endsInitialEvents: true },
      { type: "ERROR", status: { code: 410 } },
      { type: "ADDED", object: object("b", "4") },
    ),
  }),
  fc.record({ type: fc.constant("watch_ended" as const), watch: fc.nat(30) }),
  fc.record({ type: fc.constant("watch_failed" as const), watch: fc.nat(30), failure: fc.constantFrom(BROKEN, GONE) }),
  fc.record({ type: fc.constant("waited" as const), timer: fc.nat(30) }),
);

/** Half of the events concern what is open now; random ids alone would nearly always be stale. */
function current(event: ReflectorEvent, { phase }: ReflectorState): ReflectorEvent {
  if ("list" in event && event.list % 2 === 0 && phase.name === "listing") return { ...event, list: phase.list };
  if ("watch" in event && event.watch % 2 === 0 && "watch" in phase) return { ...event, watch: phase.watch };
  if ("timer" in event && event.timer % 2 === 0 && "timer" in phase) return { ...event, timer: phase.timer };
  return event;
}

test("whatever comes, once started there is always exactly one thing that it waits for, and never a delay beyond the limits", () => {
  fc.assert(
    fc.property(fc.array(anEvent, { maxLength: 80 }), fc.boolean(), (events, initialEvents) => {
      let state = step(initialState({ initialEvents }), { type: "start" }, { at: 0, jitter: 0.5 }).state;
      const openWatches = new Set("watch" in state.phase ? [state.phase.watch] : []);
      for (const [at, drawn] of events.entries()) {
        const event = current(drawn, state);
        const before = structuredClone(state);
        const stepped = step(state, event, { at, jitter: 0.5 });
        expect(state).toEqual(before);
        if (event.type === "watch_ended" || event.type === "watch_failed") openWatches.delete(event.watch);
        for (const effect of stepped.effects) {
          if (effect.type === "open_watch") openWatches.add(effect.watch);
          if (effect.type === "close_watch") openWatches.delete(effect.watch);
          if (effect.type === "wait") expect(effect.ms).toBeLessThanOrEqual(90_000);
        }
        state = stepped.state;
        expect(["listing", "streaming", "watching", "waiting"]).toContain(state.phase.name);
        expect([...openWatches]).toEqual("watch" in state.phase ? [state.phase.watch] : []);
      }
    }),
    { numRuns: 1_000 },
  );
});
