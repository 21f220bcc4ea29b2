import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { HEADERS } from "../model/membership.ts";
import { callSchema, PROTOCOL_PREFIX } from "../model/protocol.ts";
import { NOT_TAKEN_HEADER, PREFIX, parseCallBody, ProtocolRefusal, SESSION_HEADER, WRITER_EPOCH_HEADER } from "./wire.ts";

test("the SDK's own words are those of the model", () => {
  expect([PREFIX, SESSION_HEADER, NOT_TAKEN_HEADER, WRITER_EPOCH_HEADER]).toEqual([
    PROTOCOL_PREFIX,
    HEADERS.session,
    HEADERS.notTaken,
    HEADERS.writerEpoch,
  ]);
});

test("the SDK loads nothing but Node's modules and the kernel, so that a workload starts fast", () => {
  const seen = new Set<string>();
  const foreign: string[] = [];
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, from] of readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type )[^;]*? from "([^"]+)";/gm)) {
      if (from === undefined || isBuiltin(from)) continue;
      if (from.startsWith(".")) visit(join(dirname(file), from));
      else foreign.push(`${file}: ${from}`);
    }
  };
  visit(join(import.meta.dirname, "index.ts"));

  expect(foreign).toEqual([]);
  expect([...seen].filter((file) => !/src\/(sdk|kernel)\//.test(file))).toEqual([]);
  expect(seen.size).toBeGreaterThan(5);
});

test("a call's body is taken as the protocol says, and unknown fields are left alone", () => {
  expect(parseCallBody('{"bootId":"b","more":1}')).toEqual({ bootId: "b", deadline: null });
  expect(parseCallBody('{"bootId":"b","deadline":null}')).toEqual({ bootId: "b", deadline: null });
  expect(parseCallBody('{"bootId":"b","deadline":"2030-01-01T01:00:00.250+01:00"}')).toEqual({
    bootId: "b",
    deadline: Date.UTC(2030, 0, 1, 0, 0, 0, 250),
  });
});

test("an admission may bring access to a writer lease, as the model says", () => {
  const lease = { url: "http://127.0.0.1:1/v1/leases/renew", token: "t", pool: "default/orders", instance: "orders-1", ttlMs: 10_000 };
  const text = JSON.stringify({ bootId: "b", lease });
  expect(callSchema.parse(JSON.parse(text)).lease).toEqual(lease);
  expect(parseCallBody(text)).toEqual({ bootId: "b", deadline: null, lease });
});

test.each([
  ["", "body_not_json"],
  ["{", "body_not_json"],
  ["null", "body_invalid"],
  ["[]", "body_invalid"],
  ['{"bootId":1}', "body_invalid"],
  ['{"bootId":"b","deadline":5}', "body_invalid"],
  ['{"bootId":"b","deadline":"tomorrow"}', "body_invalid"],
  ['{"bootId":"b","deadline":"2030-99-01T00:00:00Z"}', "body_invalid"],
  ['{"bootId":"b","lease":null}', "body_invalid"],
  ['{"bootId":"b","lease":{"url":"file:///x","token":"t","pool":"p","instance":"i","ttlMs":1}}', "body_invalid"],
  ['{"bootId":"b","lease":{"url":"http://h/","token":"t","pool":"p","instance":"i","ttlMs":0}}', "body_invalid"],
])("the body %s is refused with %s", (text, code) => {
  let thrown: unknown;
  try {
    parseCallBody(text);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(ProtocolRefusal);
  expect((thrown as ProtocolRefusal).code).toBe(code);
  expect((thrown as ProtocolRefusal).status).toBe(400);
});
