import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { LeaseTokens } from "./token.ts";

const SUBJECT = { pool: "default/orders", instance: "orders-1", bootId: "boot-1" };

test("a token is good for exactly one process of one instance of one pool, under one key", () => {
  const tokens = new LeaseTokens("key of the test");
  const token = tokens.issue(SUBJECT);

  expect(token).toMatch(/^[\w-]{43}$/);
  expect(tokens.isOf(token, SUBJECT)).toBe(true);
  expect(new LeaseTokens("key of the test").isOf(token, SUBJECT), "it survives a restart").toBe(true);
  expect(new LeaseTokens("another key").isOf(token, SUBJECT)).toBe(false);
  for (const other of [{ pool: "default/other" }, { instance: "orders-2" }, { bootId: "boot-2" }])
    expect(tokens.isOf(token, { ...SUBJECT, ...other })).toBe(false);
});

test("a proof is good for exactly one epoch at one place of one process, and is no token", () => {
  const tokens = new LeaseTokens("key of the test");
  const given = { ...SUBJECT, ordinal: 3, epoch: epoch(1, 7) };
  const proof = tokens.proofOf(given);

  expect(proof).toMatch(/^[\w-]{43}$/);
  expect(tokens.isProofOf(proof, given)).toBe(true);
  expect(new LeaseTokens("another key").isProofOf(proof, given)).toBe(false);
  const others = [{ pool: "default/other" }, { instance: "orders-2" }, { bootId: "boot-2" }, { ordinal: 4 }, { epoch: epoch(1, 8) }];
  for (const other of others) expect(tokens.isProofOf(proof, { ...given, ...other })).toBe(false);
  expect([tokens.isOf(proof, given), tokens.isProofOf(tokens.issue(given), given)]).toEqual([false, false]);
});

test("parts that would read the same when they are put together are told apart", () => {
  const tokens = new LeaseTokens("key of the test");
  const token = tokens.issue({ pool: "a", instance: "b", bootId: "c" });
  expect(tokens.isOf(token, { pool: "a", instance: 'b","c', bootId: "" })).toBe(false);
  expect(tokens.isOf(token, { pool: "ab", instance: "", bootId: "c" })).toBe(false);
});

test("what is no token is refused, of whatever length", () => {
  const tokens = new LeaseTokens("key of the test");
  const token = tokens.issue(SUBJECT);
  for (const wrong of ["", "x", token.slice(1), `${token}AAAA`, token.replace(/^./, token.startsWith("A") ? "B" : "A"), "*".repeat(10_000)])
    expect(tokens.isOf(wrong, SUBJECT)).toBe(false);
});
