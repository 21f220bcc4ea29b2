/**
 * From the JSON Schema of a document to the structural schema of a CustomResourceDefinition: the subset of OpenAPI v3 that an API server takes.
 *
 * 1. No defaults: they are the product's, and what a user wrote stays what is stored.
 * 2. Fields that the schema does not know are dropped by the server, and refused under kubectl's strict validation.
 * 3. What a pattern cannot say of a duration becomes a CEL rule.
 */
import { DURATION_RANGE } from "../../src/model/duration.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** Where in the object it is told. */
  readonly fieldPath?: string;
}

const KEPT = ["type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "required"] as const;

/** `descriptions` and `rules` by path: `spec.size`, `spec.blueprint.objects[]`. */
export interface Annotated {
  readonly descriptions: Readonly<Record<string, string>>;
  readonly rules: Readonly<Record<string, readonly CelRule[]>>;
}

export function structural(schema: Json, path: string, about: Annotated): Json {
  const variants = (schema["oneOf"] ?? schema["anyOf"]) as readonly Json[] | undefined;
  if (variants !== undefined) return structuralOfKinds(variants, path, about);
  const { properties, items, additionalProperties } = schema as { readonly properties?: Readonly<Record<string, Json>> } & Json;
  const rules = [...(about.rules[path] ?? []), ...durationRules(schema)];
  const kept = Object.fromEntries(KEPT.flatMap((key) => (isBeyondJson(key, schema[key]) ? [] : [[key, schema[key]]])));
  return {
    ...(about.descriptions[path] === undefined ? {} : { description: about.descriptions[path] }),
    ...kept,
    // A flag beside the bound there, the bound itself in JSON Schema.
    ...(schema["exclusiveMinimum"] === undefined ? {} : { minimum: schema["exclusiveMinimum"], exclusiveMinimum: true }),
    ...(schema["const"] === undefined ? {} : { enum: [schema["const"]] }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(Object.entries(properties).map(([key, each]) => [key, structural(each, `${path}.${key}`, about)])),
        }),
    ...(items === undefined ? {} : { items: structural(items as Json, `${path}[]`, about) }),
    ...openness(additionalProperties, path, about),
    ...(rules.length === 0 ? {} : { "x-kubernetes-validations": rules }),
  };
}

interface Variant {
  readonly properties: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

/**
 * Objects that are told apart by their `kind`. A structural schema has no alternatives: it has the fields of all of them, and rules say which belong to which kind
 * and which of them each needs.
 */
function structuralOfKinds(variants: readonly Json[], path: string, about: Annotated): Json {
  const kinds = variants.map((each) => each as unknown as Variant);
  const nameOf = ({ properties }: Variant): string => String(properties["kind"]?.["const"]);
  const fields = new Map<string, Json>();
  for (const { properties } of kinds)
    for (const [name, schema] of Object.entries(properties)) {
      if (name === "kind") continue;
      const known = fields.get(name);
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`${path}.${name} differs between kinds`);
      fields.set(name, schema);
    }
  const rules = [...fields.keys()].flatMap((name): CelRule[] => {
    const of = (matches: (kind: Variant) => boolean) =>
      `[${kinds
        .filter(matches)
        .map((kind) => `'${nameOf(kind)}'`)
        .join(", ")}]`;
    const needs = of(({ required = [] }) => required.includes(name));
    const may = of(({ properties }) => properties[name] !== undefined);
    return [
      {
        rule: `has(self.${name}) || !(self.kind in ${needs})`,
        message: `${name} is missing: it is needed by the kinds ${needs.slice(1, -1)}`,
      },
      { rule: `!has(self.${name}) || self.kind in ${may}`, message: `${name} belongs to the kinds ${may.slice(1, -1)}` },
    ].filter(({ rule }) => !rule.endsWith("[])"));
  });
  return {
    ...(about.descriptions[path] === undefined ? {} : { description: about.descriptions[path] }),
    type: "object",
    required: ["kind"],
    properties: {
      kind: { type: "string", enum: kinds.map(nameOf) },
      ...Object.fromEntries([...fields].map(([name, schema]) => [name, structural(schema, `${path}.${name}`, about)])),
    },
    "x-kubernetes-validations": [...(about.rules[path] ?? []), ...rules],
  };
}

/** zod bounds whole numbers by what a double can hold. */
function isBeyondJson(key: string, value: unknown): boolean {
  return value === undefined || ((key === "minimum" || key === "maximum") && Math.abs(Number(value)) >= Number.MAX_SAFE_INTEGER);
}

/** Fields of any name: with a type of theirs they are a map, without one anything. */
function openness(additionalProperties: unknown, path: string, about: Annotated): Json {
  if (typeof additionalProperties !== "object" || additionalProperties === null) return {};
  if (Object.keys(additionalProperties).length === 0) return { "x-kubernetes-preserve-unknown-fields": true };
  return { additionalProperties: structural(additionalProperties as Json, `${path}.*`, about) };
}

/** Each part in milliseconds, added up; `ms` comes first in the alternatives, or `5ms` would be 5 minutes. */
const IN_MS =
  "self.findAll('[0-9]+(?:[.][0-9]+)?(?:ms|s|m|h|d)')" +
  ".map(p, p.endsWith('ms') ? double(p.substring(0, size(p) - 2)) : double(p.substring(0, size(p) - 1)) * " +
  "(p.endsWith('s') ? 1000.0 : p.endsWith('m') ? 60000.0 : p.endsWith('h') ? 3600000.0 : 86400000.0)).sum()";

function durationRules(schema: Json): readonly CelRule[] {
  const range = schema[DURATION_RANGE] as { readonly leastMs: number; readonly mostMs: number; readonly message: string } | undefined;
  if (range === undefined) return [];
  const bounds = [...(range.leastMs === 0 ? [] : [`${IN_MS} >= ${range.leastMs}.0`]), `${IN_MS} <= ${range.mostMs}.0`];
  return [{ rule: bounds.join(" && "), message: range.message }];
}
