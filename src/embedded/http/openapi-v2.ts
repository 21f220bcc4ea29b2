/**
 * OpenAPI v2, only so that `kubectl apply -f` takes a `kind: List`: kubectl validates its items by this older document, and by protobuf alone. Every kind
 * is in it with any content; what is wrong with an object the server says. The message is that of gnostic's OpenAPIv2.proto.
 */
import type { KindRegistry } from "../store/kind-registry.ts";

/** What clients ask for; the `@` makes it no valid media type, so that the answer names another. */
export const OPENAPI_V2_ACCEPT = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
export const OPENAPI_V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** Numbers of fields in OpenAPIv2.proto. */
const DOCUMENT = { swagger: 1, info: 2, paths: 8, definitions: 9 } as const;
const INFO = { title: 1, version: 2 } as const;
const NAMED = { name: 1, value: 2 } as const;
const SCHEMA_VENDOR_EXTENSION = 31;
const ANY_YAML = 2;
const DEFINITIONS_ITEM = 1;

export function openApiV2(kinds: KindRegistry): Buffer {
  const definitions = kinds.all().map((kind) => {
    const groupVersionKind = JSON.stringify([{ group: kind.group, version: kind.version, kind: kind.kind }]);
    const extension = [
      ...field(NAMED.name, "x-kubernetes-group-version-kind"),
      ...field(NAMED.value, Buffer.concat(field(ANY_YAML, groupVersionKind))),
    ];
    const schema = field(SCHEMA_VENDOR_EXTENSION, Buffer.concat(extension));
    const name = `${kind.group === "" ? "core" : kind.group}.${kind.version}.${kind.kind}`;
    return Buffer.concat(
      field(DEFINITIONS_ITEM, Buffer.concat([...field(NAMED.name, name), ...field(NAMED.value, Buffer.concat(schema))])),
    );
  });
  return Buffer.concat([
    ...field(DOCUMENT.swagger, "2.0"),
    ...field(DOCUMENT.info, Buffer.concat([...field(INFO.title, "Relevo embedded cluster"), ...field(INFO.version, "v1")])),
    ...field(DOCUMENT.paths, Buffer.alloc(0)),
    ...field(DOCUMENT.definitions, Buffer.concat(definitions)),
  ]);
}

/** A field of bytes: its number with wire type 2, its length, itself. */
function field(number: number, value: string | Buffer): readonly Buffer[] {
  const bytes = Buffer.from(value as string);
  return [varint((number << 3) | 2), varint(bytes.length), bytes];
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
