import fc from "fast-check";
import { expect, test } from "vitest";
import type { Exchange } from "./exchange.ts";
import { HeldList } from "./held.ts";

test("it holds exactly what was added and not deleted, whatever the order", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ add: fc.boolean(), at: fc.nat(20) }), { maxLength: 100 }), (actions) => {
      const items = Array.from({ length: 21 }, () => ({ heldAt: -1 }) as Exchange);
      const list = new HeldList();
      const expected = new Set<Exchange>();
      for (const { add, at } of actions) {
        const item = items[at] as Exchange;
        if (!add) {
          list.delete(item);
          expected.delete(item);
        } else if (!expected.has(item)) {
          list.add(item);
          expected.add(item);
        }
        expect(new Set(list.all())).toEqual(expected);
        expect(list.size).toBe(expected.size);
      }
    }),
  );
});
