import { expect, test } from "vitest";
import { poolSchema } from "./pool.ts";
import { nearest, parseDocument, problemsOf } from "./problems.ts";

const GOOD = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders" },
  spec: {
    driver: "service",
    size: { desired: 4 },
    blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
  },
};

function problems(document: unknown) {
  const parsed = poolSchema.safeParse(document);
  return parsed.success ? [] : problemsOf(poolSchema, parsed.error, document);
}

function told(spec: object) {
  return problems({ ...GOOD, spec: { ...GOOD.spec, ...spec } }).map(({ sentence, found, allowed, todo }) => [
    sentence,
    found,
    allowed,
    todo,
  ]);
}

test("a value of the wrong kind, an unknown name, a bad duration: each is told with what is allowed", () => {
  expect(told({ size: { desired: "four" } })).toEqual([
    ["spec.size.desired is not valid", "four", "a whole number from 0 to 10000", undefined],
  ]);
  expect(told({ disruption: { mode: "act" } })).toEqual([
    ["spec.disruption.mode is not valid", "act", "Off, Observe, Act", "did you mean Act?"],
  ]);
  expect(told({ disruption: { drainFor: "10 minutes" } })).toEqual([
    ["spec.disruption.drainFor is not valid", "10 minutes", "a duration such as 90s, 2m or 1h30m", undefined],
  ]);
  expect(told({ size: { desired: 4, flor: 3 } })).toEqual([
    ["spec.size.flor is no field", "flor", "desired, floor, max", "did you mean floor?"],
  ]);
  expect(told({ size: { desired: 4, floor: 5 } })).toEqual([["spec.size.floor: floor 5 is above desired 4", 5, undefined, undefined]]);
  expect(told({ blueprint: { objects: [] } })[0]).toEqual([
    "spec.blueprint.objects: holds no Deployment and no StatefulSet: the first one is the instance's lead",
    [],
    undefined,
    undefined,
  ]);
});

test("a writer lease has a TTL that silence can be told from, and needs an instance that can be told of it", () => {
  expect(told({ state: { lease: {} } })).toEqual([]);
  expect(told({ state: { lease: { ttl: "10s" } }, service: { protocol: "relevo/v1" } })).toEqual([]);
  expect(told({ state: { lease: { ttl: "900ms" } } })).toEqual([
    ["spec.state.lease.ttl: must be at least 1s and at most 365d", "900ms", undefined, undefined],
  ]);
  expect(told({ state: { lease: { ttl: "10s" } }, service: { protocol: "none" } })).toEqual([
    [
      "spec.state.lease: needs service.protocol relevo/v1: an instance without the protocol cannot be told of its lease",
      { ttl: "10s" },
      undefined,
      undefined,
    ],
  ]);
  expect(told({ state: { leese: {} } })).toEqual([["spec.state.leese is no field", "leese", "lease", "did you mean lease?"]]);
});

test("times that mean nothing are refused: none at all where one is needed, and what no clock can tell", () => {
  const sentences = (spec: object) => told(spec).map(([sentence]) => sentence);

  expect(sentences({ disruption: { drainFor: `${"9".repeat(30)}d`, candidates: { per: "366d", readyWithin: "0s" } } })).toEqual([
    "spec.disruption.drainFor: is longer than 365d",
    "spec.disruption.candidates.per: is longer than 365d",
    "spec.disruption.candidates.readyWithin: must be longer than 0s and at most 365d",
  ]);
  expect(sentences({ traffic: { perTryTimeout: "0s", healthEvery: "0ms" } })).toHaveLength(2);
  expect(sentences({ traffic: { slowStart: "0s", queue: { wait: "0s" } }, disruption: { drainLead: "0s" } })).toEqual([]);
});

test("a blueprint names objects that can be made, each once", () => {
  const [lead] = GOOD.spec.blueprint.objects;
  const named = (name: string, more: object = {}) => told({ blueprint: { objects: [{ ...lead, ...more, metadata: { name } }] } })[0]?.[0];
  const field = "spec.blueprint.objects[0]";

  expect(named("$(relevo.instance)", { apiVersion: "evil/v1" })).toBe(`${field}.apiVersion: must be apps/v1 for a Deployment`);
  for (const name of [
    "$(relevo.instance)/../x",
    "$(relevo.$(relevo.instance))",
    "$(relevo.instance)-$(relevo.secret)",
    "A$(relevo.instance)",
  ])
    expect(named(name)).toBe(`${field}.metadata.name: must be lower-case letters, digits, dashes and dots around $(relevo.instance)`);
  expect(told({ blueprint: { objects: [lead, lead] } }).map(([sentence]) => sentence)).toEqual([
    "spec.blueprint.objects[1].metadata.name: is that of another Deployment of the blueprint",
  ]);
  expect(named("$(relevo.instance)-$(relevo.site)")).toBeUndefined();
});

test("what is missing is told as missing, with where it belongs", () => {
  const { driver: _driver, ...spec } = GOOD.spec;

  expect(problems({ ...GOOD, spec })).toEqual([
    {
      path: ["spec", "driver"],
      field: "spec.driver",
      sentence: "spec.driver is missing",
      found: undefined,
      allowed: "service, worker, trino",
      todo: "add spec.driver",
      atKey: false,
    },
  ]);
});

test("all problems are told, the first one speaks", () => {
  const document = { ...GOOD, kind: "Poool", spec: { ...GOOD.spec, size: { desired: -1 } } };

  expect(() => parseDocument(poolSchema, document)).toThrow(
    expect.objectContaining({
      code: "document_invalid",
      field: "kind",
      message: "kind is not valid",
      problems: [expect.objectContaining({ field: "kind" }), expect.objectContaining({ field: "spec.size.desired" })],
    }),
  );
});

test("a name is suggested only when it is near", () => {
  expect(nearest("dsruption", ["disruption", "driver"])).toBe("disruption");
  expect(nearest("dirver", ["disruption", "driver"])).toBe("driver");
  expect(nearest("foo", ["disruption", "driver"])).toBeUndefined();
});

test("a word that chooses among forms is told as every other: what was found, what is allowed, what was probably meant", () => {
  const scale = (signal: object) => told({ driver: "worker", worker: { flow: "queue/q" }, scale: { signal, target: 4 } });
  const [[sentence, found, allowed, todo] = []] = scale({ kind: "redis-lists", connection: "c" });
  expect([sentence, found, todo]).toEqual([
    "spec.scale.signal.kind is not valid",
    "redis-lists",
    expect.stringMatching(/^did you mean redis/),
  ]);
  expect(allowed).toMatch(/^queue, |, queue(,|$)/);
  expect(allowed).not.toContain("discriminator");
});
