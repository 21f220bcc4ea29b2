/** JSON with sorted keys: equal values are equal text, whatever order their keys were written in. `undefined` becomes null, or is left out in objects. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) => (isPlainObject(inner) ? sortKeys(inner) : inner));
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sortKeys(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // Without a prototype, so that a key named `__proto__` stays a key.
  const sorted = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(value).sort()) sorted[key] = value[key];
  return sorted;
}
