import { expect, test } from "vitest";
import { presentOf } from "./controller-process.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { assertSigned, signBody } from "../../server/access.ts";
import { ANYBODY_HERE } from "../../server/callers.ts";
import { oneToken } from "../../server/one-token.ts";

test("while an optional secret is absent no notice is let in, signed or not; then what is signed with it", () => {
  let secret: string | undefined;
  const body = Buffer.from("{}");
  const access = { secret: () => secret, hasTokens: true };
  for (const signature of [undefined, signBody("{}", ""), signBody("{}", "undefined")])
    expect(() => assertSigned(access, signature, body)).toThrow(expect.objectContaining({ code: "notice_unauthorized" }) as Error);
  secret = "a-secret-of-the-cloud";
  expect(() => assertSigned(access, signBody("{}", "a-secret-of-the-cloud"), body)).not.toThrow();
});

test("the token of a file counts as it is now, and while there is none nobody is let in", async () => {
  let token: string | undefined;
  const door = oneToken(() => token);
  expect([await door.identify("", "admin"), await door.identify("undefined", "admin")]).toEqual([undefined, undefined]);
  token = "new-token";
  expect([await door.identify("new-token", "admin"), await door.identify("old-token", "admin")]).toEqual([ANYBODY_HERE, undefined]);
});

test("a secret's file may be absent at first; one that goes later is trouble, and what was in it stays", () => {
  let found: string | undefined;
  const missing = new RelevoError("file_unreadable", "It cannot be read.", { found: "ENOENT" });
  const read = presentOf({
    path: "x",
    read: () => {
      if (found === undefined) throw missing;
      return found;
    },
  });
  expect(read()).toBeUndefined();
  found = "secret";
  expect(read()).toBe("secret");
  found = undefined;
  expect(() => read()).toThrow(missing);
});
