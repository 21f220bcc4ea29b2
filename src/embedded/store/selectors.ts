/** Label and field selectors, as text (requests) and as objects (budgets, deployments). */
import type { KubeObject } from "../../kube/api.ts";
import { isMetBy, type SelectorRequirement } from "../../kube/scheduling.ts";
import { badRequest } from "./api-errors.ts";
import { valueAtParts } from "./json.ts";

export type Labels = Readonly<Record<string, string>>;

interface Requirement extends SelectorRequirement {
  readonly values: readonly string[];
  /** Of a field selector: the key's parts, split once. */
  readonly parts?: readonly string[];
}

/** Every requirement must hold. */
export interface ParsedSelector {
  readonly requirements: readonly Requirement[];
}

export const EVERYTHING: ParsedSelector = { requirements: [] };

const NAME = "[A-Za-z0-9][-A-Za-z0-9_./]*";
const SET = new RegExp(`^(${NAME})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const COMPARE = new RegExp(`^(${NAME})\\s*(==|=|!=|>|<)\\s*([-A-Za-z0-9_.]*)$`);
const PRESENT = new RegExp(`^(!?)\\s*(${NAME})$`);
const COMPARE_OPERATOR: Readonly<Record<string, string>> = { "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt" };

/** Throws a 400 for what is no selector. */
export function parseLabelSelector(text: string | undefined): ParsedSelector {
  if (text === undefined || text.trim() === "") return EVERYTHING;
  return { requirements: splitOutsideParentheses(text).map((part) => parseRequirement(part.trim(), text)) };
}

function parseRequirement(part: string, whole: string): Requirement {
  const set = SET.exec(part);
  if (set)
    return {
      key: set[1] ?? "",
      operator: set[2] === "in" ? "In" : "NotIn",
      values: (set[3] ?? "").split(",").map((value) => value.trim()),
    };
  const compare = COMPARE.exec(part);
  if (compare) return { key: compare[1] ?? "", operator: COMPARE_OPERATOR[compare[2] ?? ""] ?? "In", values: [compare[3] ?? ""] };
  const present = PRESENT.exec(part);
  if (present) return { key: present[2] ?? "", operator: present[1] === "!" ? "DoesNotExist" : "Exists", values: [] };
  throw badRequest(`unable to parse requirement: found '${part}' in the label selector '${whole}'`);
}

function splitOutsideParentheses(text: string): readonly string[] {
  return text.split(/,(?![^(]*\))/);
}

/** The most selective equality, for an index: `["app", "orders"]`. */
export function equalityOf(selector: ParsedSelector, keys?: readonly string[]): readonly [string, string] | undefined {
  for (const { key, operator, values } of selector.requirements) {
    const [value] = values;
    if (operator === "In" && values.length === 1 && value !== undefined && (keys === undefined || keys.includes(key))) return [key, value];
  }
  return undefined;
}

export function matchesLabels(selector: ParsedSelector, labels: Labels | undefined): boolean {
  for (const requirement of selector.requirements) if (!isMetBy(requirement, labels?.[requirement.key])) return false;
  return true;
}

/** Throws a 400 for a field that the kind does not select by, as the real server does. */
export function parseFieldSelector(text: string | undefined, selectable: readonly string[]): ParsedSelector {
  if (text === undefined || text.trim() === "") return EVERYTHING;
  const requirements = text.split(",").map((part): Requirement => {
    const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(part.trim());
    if (!match) throw badRequest(`invalid field selector '${text}': can't understand '${part}'`);
    const key = (match[1] ?? "").trim();
    if (!selectable.includes(key)) throw badRequest(`field label not supported: ${key}`);
    return { key, operator: match[2] === "!=" ? "NotIn" : "In", values: [match[3] ?? ""], parts: key.split(".") };
  });
  return { requirements };
}

/** A field as a selector sees it: absent is the empty text, and a flag `false`. */
export function fieldText(object: KubeObject, parts: readonly string[]): string {
  const value = valueAtParts(object, parts);
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return FLAGS.includes(parts.at(-1) ?? "") ? "false" : "";
  return typeof value === "object" ? "" : String(value);
}

const FLAGS: readonly string[] = ["unschedulable", "hostNetwork"];

export function matchesFields(selector: ParsedSelector, object: KubeObject): boolean {
  for (const requirement of selector.requirements) {
    if (!isMetBy(requirement, fieldText(object, requirement.parts ?? requirement.key.split(".")))) return false;
  }
  return true;
}

/** A selector as it stands in an object. A null among its expressions is no requirement: it matches nothing. */
export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly (SelectorRequirement | null)[];
}

/** Label selectors know no others. */
const OPERATORS: readonly string[] = ["In", "NotIn", "Exists", "DoesNotExist"];

/** An absent selector matches nothing, an empty one everything (policy/v1). */
export function matchesLabelSelector(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return false;
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels?.[key] !== value) return false;
  return (selector.matchExpressions ?? []).every(
    (requirement) => requirement !== null && OPERATORS.includes(requirement.operator) && isMetBy(requirement, labels?.[requirement.key]),
  );
}
