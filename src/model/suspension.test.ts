import { expect, test } from "vitest";
import { phaseOf } from "./suspension.ts";

const part = { object: "Deployment/web", running: 0, restoresTo: null, trouble: null };
const seen = { suspended: true, serving: 0, desired: 0, instances: 0, parts: [part] };

test.each([
  ["off", seen],
  ["stopping", { ...seen, instances: 1 }],
  ["stopping", { ...seen, parts: [{ ...part, running: 2 }] }],
  ["stopping", { ...seen, parts: [{ ...part, trouble: "it is not there" }] }],
  ["starting", { ...seen, suspended: false, desired: 2, serving: 1 }],
  ["starting", { ...seen, suspended: false, parts: [{ ...part, restoresTo: "3" }] }],
  ["on", { ...seen, suspended: false, desired: 2, serving: 2 }],
] as const)("it is %s by what is seen, and never by what was asked for (T19)", (phase, status) => {
  expect(phaseOf(status)).toBe(phase);
});
