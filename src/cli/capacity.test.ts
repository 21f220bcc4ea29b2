import { expect, test } from "vitest";
import { runCli } from "./testing/run-cli.ts";

test("capacity shows how well each place is and what could take over", async () => {
  const { out, code } = await runCli(["get", "capacity"]);
  expect([code, out]).toEqual([
    0,
    [
      "SITE   ZONE    TYPE          CAPACITY  HEAT      MACHINES  LOST  REFUSED",
      "local  zone-a  local.xlarge  spot      0.63 hot  3         2     1",
      "",
      "SUPPLY                  KIND     FREE  RESERVED  READY IN",
      "standby/default/orders  standby  1     2         0s",
      "",
      "what is made now goes away from zone-a, not on node-a1",
      "NodePool spot: 3 of 20 machines",
      "local absorbs 20 a second and 200 at once; 198 now",
      "of 4 that must go 4 will serve before their deadline, 3 within 1m30s: quota",
      "",
    ].join("\n"),
  ]);
});

test("as JSON it is the API's document", async () => {
  const { out } = await runCli(["get", "capacity", "-o", "json"]);
  expect(JSON.parse(out)).toMatchObject({
    spots: [{ zone: "zone-a", heat: 0.625, hot: true, machines: 3 }],
    placement: { avoid: { zones: ["zone-a"], instanceTypes: [], nodes: ["node-a1"] }, capacityType: null },
    supplies: [{ id: "standby/default/orders", free: 1, reserved: 2 }],
  });
});

test("a name or --watch is refused: capacity is one thing", async () => {
  expect((await runCli(["get", "capacity", "zone-a"])).code).toBe(2);
  expect((await runCli(["get", "capacity", "--watch"])).code).toBe(2);
});
