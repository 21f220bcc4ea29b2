import { expect, test } from "vitest";
import { matchesLabels, matchesLabelSelector, parseLabelSelector } from "./selectors.ts";

const LABELS = { app: "orders", tier: "2" };

test.each([
  ["app=orders", true],
  ["app==orders,tier", true],
  ["app!=orders", false],
  ["app in (orders, quotes)", true],
  ["app notin (orders)", false],
  ["zone notin (a)", true],
  ["!zone", true],
  ["zone", false],
  ["tier>1", true],
  ["tier<2", false],
])("as text: %s matches: %s", (text, matches) => {
  expect(matchesLabels(parseLabelSelector(text), LABELS)).toBe(matches);
});

const asking = (operator: string, ...values: string[]) => ({ matchExpressions: [{ key: "app", operator, values }] });

test.each([
  ["none", undefined, false],
  ["an empty one", {}, true],
  ["labels", { matchLabels: { app: "orders" } }, true],
  ["labels of which one differs", { matchLabels: { app: "orders", tier: "3" } }, false],
  ["In", asking("In", "orders"), true],
  ["NotIn", asking("NotIn", "orders"), false],
  ["Exists", asking("Exists"), true],
  ["DoesNotExist", asking("DoesNotExist"), false],
  ["an operator that label selectors do not know", asking("Gt", "0"), false],
  ["a null among the expressions", { matchExpressions: [null] }, false],
])("as an object: %s matches: %s", (_, selector, matches) => {
  expect(matchesLabelSelector(selector, LABELS)).toBe(matches);
});
