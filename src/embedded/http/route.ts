/** From a path to what it addresses. */
import type { KindSpec } from "../kinds.ts";
import type { KindRegistry } from "../store/kind-registry.ts";

export type Route =
  | { readonly to: "collection"; readonly kind: KindSpec; readonly namespace: string | undefined }
  | {
      readonly to: "object";
      readonly kind: KindSpec;
      readonly namespace: string | undefined;
      readonly name: string;
      readonly subresource: string | undefined;
    };

/** Undefined when no kind is served there. */
export function routeTo(path: string, kinds: KindRegistry): Route | undefined {
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decodePart);
  const address =
    parts[0] === "api"
      ? { group: "", version: parts[1], rest: parts.slice(2) }
      : { group: parts[1], version: parts[2], rest: parts.slice(3) };
  const { group, version, rest } = address;
  if ((parts[0] !== "api" && parts[0] !== "apis") || group === undefined || version === undefined) return undefined;
  const isScoped = rest[0] === "namespaces" && rest[2] !== undefined && !["status", "finalize"].includes(rest[2]);
  const namespace = isScoped ? rest[1] : undefined;
  const [plural, name, subresource, ...more] = isScoped ? rest.slice(2) : rest;
  if (plural === undefined || more.length > 0) return undefined;
  const kind = kinds.find({ group, version, plural });
  if (!kind || (namespace !== undefined && !kind.namespaced)) return undefined;
  if (name === undefined) return { to: "collection", kind, namespace };
  if (kind.namespaced && namespace === undefined) return undefined;
  return { to: "object", kind, namespace, name, subresource };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // Not decodable: then it is no name of anything, and the look-up says so.
  }
}
