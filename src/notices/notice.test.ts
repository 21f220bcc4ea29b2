import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Notice, noticeOf, subjectOf } from "./notice.ts";

function keyOf(dedupeKey: string, subject?: string): Pick<Notice, "source" | "dedupeKey"> {
  const said = { dedupeKey, reason: null, machineIds: [], deadline: null, ...(subject === undefined ? {} : { subject }) };
  return noticeOf(said, { id: "n-1", source: "webhook", receivedAt: 0, body: "" });
}

const aText = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "#", "%", "2", "3", "5", " ", "\0", "é"), maxLength: 8 }),
  fc.string({ unit: fc.constantFrom("a", "#", "é"), minLength: 200, maxLength: 600 }),
);

test("two announcements that differ have keys that differ, and subjects are the same where they were the same", () => {
  fc.assert(
    fc.property(aText, aText, aText, aText, (oneKey, oneSubject, otherKey, otherSubject) => {
      const [one, other] = [keyOf(oneKey, oneSubject), keyOf(otherKey, otherSubject)];
      expect(one.dedupeKey === other.dedupeKey).toBe(oneKey === otherKey && oneSubject === otherSubject);
      expect(subjectOf(one) === subjectOf(other)).toBe(oneSubject === otherSubject);
      expect(keyOf(oneKey).dedupeKey === keyOf(otherKey).dedupeKey).toBe(oneKey === otherKey);
      expect(subjectOf(keyOf(oneKey))).toBeUndefined();
    }),
    { numRuns: 2_000 },
  );
});

test("a key fits into every store's index as it is, and holds nothing that a database refuses", () => {
  fc.assert(
    fc.property(aText, aText, (key, subject) => {
      const { dedupeKey } = keyOf(key, subject);
      expect([Buffer.byteLength(dedupeKey) <= 512, dedupeKey.includes("\0"), dedupeKey.isWellFormed()]).toEqual([true, false, true]);
    }),
  );
  expect(keyOf("\ud800").dedupeKey.isWellFormed()).toBe(true);
});
