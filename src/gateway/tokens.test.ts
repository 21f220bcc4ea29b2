import fc from "fast-check";
import { expect, test } from "vitest";
import { KEYS } from "./testing/gateway.ts";
import { cookieValue, parseSessionHeader, type TokenClaims, Tokens } from "./tokens.ts";

const claims: TokenClaims = { route: "orders", instance: "orders-1", incarnation: 3, session: "s-1", ttlMs: 10_000, expiresAt: 5_000 };

test("what one replica signed another that shares the key understands", () => {
  expect(new Tokens(KEYS).verify(new Tokens(KEYS).sign(claims), 4_999)).toEqual({ claims });
});

test("it ends with its time", () => {
  const tokens = new Tokens(KEYS);
  expect(tokens.verify(tokens.sign(claims), 5_000)).toEqual({ fault: "token_expired" });
});

test("keys can be exchanged: the first signs, all verify, an unknown one is a forgery", () => {
  const [old, fresh] = [KEYS, [{ id: "k2", secret: "fedcba9876543210" }]];
  const token = new Tokens(old).sign(claims);
  expect(new Tokens([...fresh, ...old]).verify(token, 0)).toEqual({ claims });
  expect(new Tokens(fresh).verify(token, 0)).toEqual({ fault: "token_forged" });
});

test("a changed character anywhere is noticed", () => {
  const tokens = new Tokens(KEYS);
  const token = tokens.sign(claims);
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.constantFrom("A", "b", "0", "-"), (at, character) => {
      fc.pre(token[at] !== character);
      // The last character of a base64url signature carries two bits that mean nothing.
      fc.pre(at !== token.length - 1);
      expect(tokens.verify(token.slice(0, at) + character + token.slice(at + 1), 0)).toHaveProperty("fault");
    }),
  );
});

test("no text makes it throw", () => {
  const tokens = new Tokens(KEYS);
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(tokens.verify(text, 0)).toHaveProperty("fault");
    }),
  );
  expect(tokens.verify("x".repeat(100_000), 0)).toEqual({ fault: "token_malformed" });
});

test("a key that is too short or has a bad id is refused", () => {
  for (const keys of [[], [{ id: "k1", secret: "short" }], [{ id: "a.b", secret: "0123456789abcdef" }]]) {
    expect(() => new Tokens(keys)).toThrow(/at least 16 bytes/);
  }
});

test("a cookie is found among others", () => {
  expect(cookieValue("a=1; relevo-token=v1.k=.x; b=2", "relevo-token")).toBe("v1.k=.x");
  expect(cookieValue("xrelevo-token=1", "relevo-token")).toBe(undefined);
});

test.each([
  ["begin; ttl=10", { action: "begin", ttlMs: 10_000 }],
  ["Begin ;ttl = 3", { action: "begin", ttlMs: 3_000 }],
  ["begin; ttl=9999999", { action: "begin", ttlMs: 86_400_000 }],
  ["end", { action: "end" }],
  ["begin", undefined],
  ["begin; ttl=-1", undefined],
  ["", undefined],
])("%j of an instance means %j", (value, meaning) => {
  expect(parseSessionHeader(value)).toEqual(meaning);
});
