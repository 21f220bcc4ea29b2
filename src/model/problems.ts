/**
 * What is wrong with a document, for people: which field, what was found, what is allowed, what to do. Made from the schema itself, so that it can never
 * say anything else than the schema does.
 */
import { z } from "zod";
import { RelevoError, showable } from "../kernel/errors.ts";

export interface Problem {
  readonly path: readonly (string | number)[];
  /** The path as people write it: `spec.blueprint.objects[0].metadata.name`. */
  readonly field: string;
  readonly sentence: string;
  readonly found: unknown;
  readonly allowed: string | undefined;
  readonly todo: string | undefined;
  /** The field's name itself is wrong, not its value. */
  readonly atKey: boolean;
}

/** A document with at least one problem. The first one speaks; `problems` holds all, at most 20. */
export class DocumentError extends RelevoError {
  readonly problems: readonly [Problem, ...Problem[]];

  constructor(problems: readonly [Problem, ...Problem[]]) {
    const [first] = problems;
    super("document_invalid", first.sentence, {
      field: first.field,
      found: first.found,
      ...(first.allowed === undefined ? {} : { allowed: first.allowed }),
      ...(first.todo === undefined ? {} : { todo: first.todo }),
    });
    this.name = "DocumentError";
    this.problems = problems;
  }
}

const MAX_PROBLEMS = 20;

/** Parses, or throws `DocumentError`. */
export function parseDocument<T extends z.ZodType>(schema: T, input: unknown): z.output<T> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const [first, ...more] = problemsOf(schema, parsed.error, input);
  if (first === undefined) throw parsed.error;
  throw new DocumentError([first, ...more]);
}

export function problemsOf(schema: z.ZodType, error: z.ZodError, input: unknown): readonly Problem[] {
  const shape = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Shape;
  return error.issues.flatMap((issue) => problemsOfIssue(shape, issue, input)).slice(0, MAX_PROBLEMS);
}

export function formatPath(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, part) => (typeof part === "number" ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`), "");
}

function problemsOfIssue(shape: Shape, issue: z.core.$ZodIssue, input: unknown): readonly Problem[] {
  const path = issue.path.map((part) => (typeof part === "symbol" ? String(part) : part));
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownField(shape, path, key, input));
  const field = formatPath(path);
  const found = valueAt(input, path);
  const about = { path, field, found: showable(found), atKey: false };
  const place = shapeAt(shape, path, input);
  if (issue.code === "custom") return [{ ...about, sentence: `${field}: ${issue.message}`, allowed: undefined, todo: undefined }];
  const allowed = allowedBy(place) ?? saidBy(issue, place);
  if (found === undefined) return [{ ...about, sentence: `${field} is missing`, allowed, todo: `add ${field}` }];
  const near = typeof found === "string" && place?.enum ? nearest(found, place.enum.map(String)) : undefined;
  return [{ ...about, sentence: `${field} is not valid`, allowed, todo: near === undefined ? undefined : `did you mean ${near}?` }];
}

function unknownField(shape: Shape, parent: readonly (string | number)[], key: string, input: unknown): Problem {
  const path = [...parent, key];
  const names = Object.keys(shapeAt(shape, parent, input)?.properties ?? {});
  const near = nearest(key, names);
  return {
    path,
    field: formatPath(path),
    sentence: `${formatPath(path)} is no field`,
    found: key,
    allowed: names.length === 0 ? undefined : names.join(", "),
    todo: near === undefined ? `remove ${key}` : `did you mean ${near}?`,
    atKey: true,
  };
}

/** The part of JSON Schema that zod makes of our schemas. */
interface Shape {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly oneOf?: readonly Shape[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

function shapeAt(shape: Shape, path: readonly (string | number)[], input: unknown): Shape | undefined {
  let at: Shape | undefined = chosen(shape, input);
  for (const [index, part] of path.entries()) {
    const next: Shape | undefined = typeof part === "number" ? at?.items : at?.properties?.[part];
    at = next && chosen(next, valueAt(input, path.slice(0, index + 1)));
  }
  return at;
}

/** Of several forms the one that the value's own words name, as its `kind`; where they name none, what all of them say of the words that tell them apart. */
function chosen(shape: Shape, value: unknown): Shape {
  const forms = shape.oneOf ?? shape.anyOf;
  if (forms === undefined) return shape;
  const isNamed = ({ properties = {} }: Shape): boolean => {
    const words = Object.entries(properties).filter(([, { const: word }]) => word !== undefined);
    return words.length > 0 && words.every(([name, { const: word }]) => valueAt(value, [name]) === word);
  };
  const named = forms.filter(isNamed);
  if (named.length === 1 && named[0] !== undefined) return named[0];
  const names = Object.keys(forms[0]?.properties ?? {});
  const apart = names.flatMap((name): [string, Shape][] => {
    const words = forms.map(({ properties }) => properties?.[name]?.const);
    return words.includes(undefined) ? [] : [[name, { enum: [...new Set(words)] }]];
  });
  return apart.length === 0 ? shape : { type: "object", properties: Object.fromEntries(apart) };
}

function valueAt(input: unknown, path: readonly (string | number)[]): unknown {
  let at = input;
  for (const part of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Readonly<Record<string | number, unknown>>)[part];
  }
  return at;
}

/** Undefined where the schema's own message says it better, as for a pattern. */
function allowedBy(shape: Shape | undefined): string | undefined {
  if (shape === undefined) return undefined;
  if (shape.const !== undefined) return String(shape.const);
  if (shape.enum) return shape.enum.map(String).join(", ");
  switch (shape.type) {
    case "integer":
    case "number":
      return `a ${shape.type === "integer" ? "whole " : ""}number${range(shape.minimum, shape.maximum)}`;
    case "array":
      return shape.minItems === undefined && shape.maxItems === undefined
        ? "a list"
        : `a list of${range(shape.minItems, shape.maxItems).replace(" from ", " ")} entries`;
    case "object":
      return shape.properties && Object.keys(shape.properties).length > 0
        ? `a mapping with ${Object.keys(shape.properties).join(", ")}`
        : "a mapping";
    case "boolean":
      return "true or false";
    case "string":
      return shape.pattern === undefined ? "text" : undefined;
    default:
      return undefined;
  }
}

/** The message that the schema was given; zod's own ("Invalid input: …") speaks of types of the program. */
function saidBy({ message }: z.core.$ZodIssue, place: Shape | undefined): string | undefined {
  if (!message.startsWith("Invalid input")) return message;
  return place?.type === "string" ? "text" : undefined;
}

function range(low: number | undefined, high: number | undefined): string {
  const top = high === undefined || high >= Number.MAX_SAFE_INTEGER ? undefined : high;
  const bottom = low === undefined || low <= Number.MIN_SAFE_INTEGER ? undefined : low;
  if (bottom !== undefined && top !== undefined) return ` from ${bottom} to ${top}`;
  if (bottom !== undefined) return ` at least ${bottom}`;
  return top === undefined ? "" : ` at most ${top}`;
}

/** The name that was probably meant: at most a third of its letters differ; undefined when none is near. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of names) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance && distance <= Math.max(1, Math.ceil(candidate.length / 3))) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment); names longer than 64 letters count as unlike. */
function editDistance(a: string, b: string): number {
  if (a.length > 64 || b.length > 64) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      let least = Math.min((above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (above[column - 1] ?? 0) + (isSame ? 0 : 1));
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwap) least = Math.min(least, (before[column - 2] ?? 0) + 1);
      current.push(least);
    }
    before = above;
    above = current;
  }
  return above[b.length] ?? 0;
}
