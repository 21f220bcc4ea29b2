import { expect, test } from "vitest";
import { AddressSpace, NodeAddresses } from "./addresses.ts";

test("every pod has an address of its own in 127.64.0.0/10, and nodes do not overlap", () => {
  const space = new AddressSpace({ next: () => 0.999_999_9 });
  const nodes = [space.node(), space.node()];

  expect(nodes.map((node) => [node.hostIP, node.allocate(), node.allocate()])).toEqual([
    ["127.127.255.1", "127.127.255.2", "127.127.255.3"],
    ["127.64.0.1", "127.64.0.2", "127.64.0.3"],
  ]);
});

test("an address is not used again before the others of its node were", () => {
  const node = new NodeAddresses(0);
  const first = node.allocate();
  node.release(first);
  const next = Array.from({ length: 253 }, () => node.allocate());

  expect(next[0]).toBe("127.64.0.3");
  expect(next.at(-1)).toBe(first);
  expect(() => node.allocate()).toThrow("no address left");
});
