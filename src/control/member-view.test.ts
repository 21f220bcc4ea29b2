import { beforeEach, expect, test } from "vitest";
import { MemberView, type SeenLease } from "./member-view.ts";

let view: MemberView;
let version = 0;

beforeEach(() => {
  view = new MemberView({ self: "a", holder: "a/1", durationMs: 4_000, gapMs: 2_500 });
});

function renewed(id: string, now: number, change: Partial<SeenLease> = {}): void {
  version += 1;
  view.saw({ id, api: `http://${id}`, holder: `${id}/1`, version: String(version), ...change }, now);
}

const ids = (now: number): readonly string[] => {
  view.look(now);
  return view.live(now).map(({ id }) => id);
};

test("it lives once its own Lease is seen, and the others from the first sight of theirs", () => {
  expect(ids(0)).toEqual([]);
  renewed("b", 0);
  renewed("a", 10);
  expect(ids(10)).toEqual(["a", "b"]);
});

test("who is silent for the duration is dead, while own renewals are seen; and lives again once it renews", () => {
  renewed("b", 0);
  for (let at = 0; at <= 4_000; at += 1_000) renewed("a", at);
  expect(ids(3_999)).toEqual(["a", "b"]);
  expect(view.look(3_999)).toBe(4_000);
  expect(ids(4_000)).toEqual(["a"]);
  renewed("b", 4_100);
  expect(ids(4_100)).toEqual(["a", "b"]);
});

test("the same object again is no change", () => {
  renewed("b", 0, { version: "7" });
  for (let at = 0; at <= 4_000; at += 1_000) {
    renewed("a", at);
    view.saw({ id: "b", api: "http://b", holder: "b/1", version: "7" }, at);
  }
  expect(ids(4_000)).toEqual(["a"]);
});

test("while nothing comes back from the API server nobody is declared dead, and this one is not to take anything", () => {
  renewed("a", 0);
  renewed("b", 0);
  expect(ids(60_000)).toEqual(["b"]);
  expect(view.isLive(60_000)).toBe(false);
  expect(view.look(60_000)).toBeNull();
});

test("after such a gap everybody has the full time anew", () => {
  renewed("a", 0);
  renewed("b", 0);
  for (let at = 60_000; at <= 64_000; at += 1_000) renewed("a", at);
  expect(ids(63_999)).toEqual(["a", "b"]);
  expect(ids(64_000)).toEqual(["a"]);
});

test("who deletes its Lease is gone at once", () => {
  renewed("a", 0);
  renewed("b", 0);
  view.gone("b");
  expect(ids(1)).toEqual(["a"]);
});

test("another process under the same id that came later takes the place", () => {
  renewed("a", 0);
  renewed("a", 100, { holder: "a/2" });
  expect(view.isSuperseded).toBe(true);
  expect(view.isLive(100)).toBe(false);
  expect(ids(100)).toEqual([]);
});

test("what a former life under the same id left behind is not another process that took the place", () => {
  renewed("a", 0, { holder: "a/0" });
  expect(view.isSuperseded).toBe(false);
  expect(view.isLive(0)).toBe(false);
  renewed("a", 10);
  expect(view.isLive(10)).toBe(true);
});

test("Leases of the dead are litter after a while", () => {
  renewed("b", 0);
  for (let at = 0; at <= 10_000; at += 1_000) renewed("a", at);
  view.look(10_000);
  expect(view.deadSince(1)).toMatchObject([{ id: "b" }]);
  expect(view.deadSince(0)).toEqual([]);
});
