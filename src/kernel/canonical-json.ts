/** JSON with sorted keys: equal values are equal text, whatever order their keys were written in. `undefined` becomes null, or is left out in objects. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value ?? null));
}

/** The same value where all keys are in order already. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") return sorted(value.toJSON());
  return Array.isArray(value) ? sortedItems(value) : sortedMembers(value as Readonly<Record<string, unknown>>);
}

function sortedItems(items: readonly unknown[]): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    const member = sorted(item);
    if (member !== item) (copy ??= [...items])[index] = member;
  }
  return copy ?? items;
}

function sortedMembers(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const keys = Object.keys(value);
  let isSame = true;
  for (let index = 1; index < keys.length && isSame; index++) isSame = (keys[index - 1] as string) < (keys[index] as string);
  if (!isSame) keys.sort();
  const copy = emptyFor(keys);
  for (const key of keys) {
    const member = sorted(value[key]);
    copy[key] = member;
    isSame &&= member === value[key];
  }
  return isSame ? value : copy;
}

/** Without a prototype only where a key would change it: objects without one are slow to make and to write. */
function emptyFor(keys: readonly string[]): Record<string, unknown> {
  return keys.includes("__proto__") ? (Object.create(null) as Record<string, unknown>) : {};
}
