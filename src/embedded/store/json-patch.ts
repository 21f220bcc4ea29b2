/** JSON patch (RFC 6902). */
import jsonPatch from "fast-json-patch";
import { badRequest, unprocessablePatch } from "./api-errors.ts";

const OPERATIONS_MAX = 10_000;

/** The patched copy. Throws 422 for a `test` that fails or an operation that does not fit the object. */
export function applyJsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw badRequest("a JSON patch is a list of operations");
  if (operations.length > OPERATIONS_MAX)
    throw unprocessablePatch(`The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${operations.length}`);
  try {
    return jsonPatch.applyPatch(target, operations, true, false, true).newDocument;
  } catch (error) {
    throw unprocessablePatch(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
  }
}
