/** JSON merge patch (RFC 7386). */
import { isJsonObject, type JsonObject } from "./json.ts";

/** The patched value; what the patch does not touch is shared with the target. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const base: JsonObject = isJsonObject(target) ? target : {};
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (value !== undefined) result[key] = mergePatch(base[key], value);
  }
  return result;
}
