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
 * A deeply frozen value, equal as JSON. What is deeply frozen already is shared and not copied, so that a patch of one field costs one path.
 * Members that are undefined are left out, as JSON does.
 */
export function sealJson<T>(value: T): T {
  return seal(value, 0) as T;
}

function seal(value: unknown, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw new NotJsonError(`${value} is no JSON number`);
  }
  if (typeof value !== "object") throw new NotJsonError(`a ${typeof value} is no JSON value`);
  if (depth > DEPTH_MAX) throw new NotJsonError(`nested deeper than ${DEPTH_MAX}`);
  return Array.isArray(value) ? sealArray(value, depth) : sealObject(value as Record<string, unknown>, depth);
}

function sealArray(value: readonly unknown[], depth: number): readonly unknown[] {
  if (Object.isFrozen(value)) {
    if (value.every((item) => seal(item, depth + 1) === item)) return value;
  }
  return Object.freeze(value.map((item) => (item === undefined ? null : seal(item, depth + 1))));
}

function sealObject(value: Record<string, unknown>, depth: number): JsonObject {
  if (Object.isFrozen(value)) {
    let same = true;
    for (const key in value) {
      const member = value[key];
      if (member === undefined || seal(member, depth + 1) !== member) {
        same = false;
        break;
      }
    }
    if (same) return value;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw new NotJsonError("an instance of a class is no JSON value");
  const copy: Record<string, unknown> = {};
  for (const key in value) {
    // Assigning it would change the prototype instead of making a member.
    if (key === "__proto__") throw new NotJsonError("__proto__ is no allowed field name");
    const member = value[key];
    if (member !== undefined) copy[key] = seal(member, depth + 1);
  }
  return Object.freeze(copy);
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
  let value: unknown = object;
  for (const part of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}
