import * as fc from "fast-check";
import { expect, test } from "vitest";
import { machineIdFrom, machineIdOf } from "./machine.ts";

const SCALE_SET =
  "azure:///subscriptions/0b1f6471/resourceGroups/MC_rg/providers/Microsoft.Compute/virtualMachineScaleSets/aks-np/virtualMachines/3";

test("a machine of AWS is its instance id, of any other cloud its whole providerID; Azure's case has no meaning", () => {
  expect(
    [
      "aws:///eu-west-1a/i-0a1b",
      "gce://project/europe-west1-b/gke-np-1",
      "azure:///subscriptions/0b1f6471/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/VM-1",
      SCALE_SET,
      "kwok://node-1",
      "openstack:///8f0c6a5b",
    ].map(machineIdOf),
  ).toEqual([
    "i-0a1b",
    "gce://project/europe-west1-b/gke-np-1",
    "azure:///subscriptions/0b1f6471/resourcegroups/rg/providers/microsoft.compute/virtualmachines/vm-1",
    SCALE_SET.toLowerCase(),
    "kwok://node-1",
    "openstack:///8f0c6a5b",
  ]);
});

test.each([
  "",
  "i-a",
  "aws:///zone/",
  "aws:///i-a",
  "aws:///zone/i-a/i-b",
  "aws:///zone/fargate-10.0.0.1",
  "AWS:///zone/i-a",
  "gce://project/name",
  "gce://project/zone/name/more",
  "azure:///subscriptions/x/virtualMachines/y",
  "kwok://",
  `kwok://${"x".repeat(2_000)}`,
])("%j names no machine", (providerID) => {
  expect(machineIdOf(providerID)).toBeUndefined();
});

test("a sender may name a machine by its providerID or by its EC2 instance id, and by nothing else", () => {
  expect(["aws:///eu-west-1a/i-0a1b", "i-0a1b", "ip-10-0-0-1.ec2.internal", "node-1", ""].map(machineIdFrom)).toEqual([
    "i-0a1b",
    "i-0a1b",
    undefined,
    undefined,
    undefined,
  ]);
});

test("whatever the text, the answer is stable: a machine is named once and for all", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.constantFrom(SCALE_SET, "gce://p/z/n")), (text) => {
      const machine = machineIdFrom(text);
      if (machine !== undefined) expect(machineIdFrom(machine)).toBe(machine);
    }),
  );
});

test("what no cloud writes names no machine: control characters, spaces, halves of characters", () => {
  const odd = ["\n", "\0", " ", "\u001b[31m", "\u202e", "\ud800"];
  const ids = ["aws:///zone/i-1", "gce://project/zone/name", "kwok://node", "azure:///subscriptions/a/resourceGroups/b/virtualMachines/c"];
  expect(ids.flatMap((id) => odd.flatMap((end) => [machineIdOf(`${id}${end}`), machineIdFrom(`${id}${end}x`)])).filter(Boolean)).toEqual(
    [],
  );
  expect(machineIdOf("aws:///zone/i-0abc.x")).toBeUndefined();
});
