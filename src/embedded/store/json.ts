/** Values as JSON has them, immutable once they are in the store. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** How deep an object may nest; etcd and the API server have such limits too, and recursion needs one. */
const DEPTH_MAX = 64;

/** What is no JSON: a date, a function, a cycle. */
export class NotJsonError extends Error {
  override readonly name = "NotJsonError";
}

/**
 * A deeply frozen value, equal as JSON. What is deeply frozen already is shared and not copied, so that a patch of one field costs one path; what is the
 * same as in `known`, a value sealed before, is not even looked at. Members that are undefined are left out, as JSON does.
 */
export function sealJson<T>(value: T, known?: unknown): T {
  return seal(value, known, 0) as T;
}

function seal(value: unknown, known: unknown, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw new NotJsonError(`${value} is no JSON number`);
  }
  if (typeof value !== "object") throw new NotJsonError(`a ${typeof value} is no JSON value`);
  if (value === known) return value;
  if (depth > DEPTH_MAX) throw new NotJsonError(`nested deeper than ${DEPTH_MAX}`);
  const before = typeof known === "object" && known !== null ? (known as Record<string, unknown>) : NOTHING;
  return Array.isArray(value) ? sealArray(value, before, depth) : sealObject(value as Record<string, unknown>, before, depth);
}

const NOTHING: Record<string, unknown> = Object.freeze({});

function sealArray(value: readonly unknown[], known: Record<string, unknown>, depth: number): readonly unknown[] {
  if (Object.isFrozen(value) && value.every((item, index) => seal(item, known[index], depth + 1) === item)) return value;
  return Object.freeze(value.map((item, index) => (item === undefined ? null : seal(item, known[index], depth + 1))));
}

function sealObject(value: Record<string, unknown>, known: Record<string, unknown>, depth: number): JsonObject {
  if (Object.isFrozen(value) && isSealed(value, known, depth)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw new NotJsonError("an instance of a class is no JSON value");
  const copy: Record<string, unknown> = {};
  for (const key in value) {
    // Assigning it would change the prototype instead of making a member.
    if (key === "__proto__") throw new NotJsonError("__proto__ is no allowed field name");
    const member = value[key];
    if (member !== undefined) copy[key] = seal(member, known[key], depth + 1);
  }
  return Object.freeze(copy);
}

function isSealed(value: Record<string, unknown>, known: Record<string, unknown>, depth: number): boolean {
  for (const key in value) {
    const member = value[key];
    if (member === undefined || seal(member, known[key], depth + 1) !== member) return false;
  }
  return true;
}

/** Equality as JSON: the order of members does not count, undefined members do not exist. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => equalJson(item, b[index]));
  }
  const left = a as JsonObject;
  const right = b as JsonObject;
  let members = 0;
  for (const key in left) {
    if (left[key] === undefined) continue;
    members += 1;
    if (!equalJson(left[key], right[key])) return false;
  }
  for (const key in right) if (right[key] !== undefined) members -= 1;
  return members === 0;
}

/** The value at `spec.nodeName`, or undefined. */
export function valueAt(object: unknown, path: string): unknown {
  return valueAtParts(object, path.split("."));
}

export function valueAtParts(object: unknown, parts: readonly string[]): unknown {
  let value: unknown = object;
  for (const part of parts) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}
