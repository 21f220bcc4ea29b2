/** Reads request bodies: bounded, JSON or YAML. */
import type { IncomingMessage } from "node:http";
import { parse as parseYaml } from "yaml";
import { badRequest, requestTooLarge, unsupportedMediaType } from "../store/api-errors.ts";
import { isJsonObject, type JsonObject } from "../store/json.ts";

/** As a real server. */
export const BODY_BYTES_MAX = 3 * 2 ** 20;

export interface RequestBody {
  /** Without parameters, in lower case; `application/json` when the request names none. */
  readonly mediaType: string;
  readonly text: string;
}

export async function readBody(request: IncomingMessage): Promise<RequestBody> {
  const tooLarge = `Request entity too large: limit is ${BODY_BYTES_MAX}`;
  if (Number(request.headers["content-length"] ?? 0) > BODY_BYTES_MAX) throw requestTooLarge(tooLarge);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES_MAX) throw requestTooLarge(tooLarge);
    chunks.push(chunk as Buffer);
  }
  const mediaType = (request.headers["content-type"] ?? "application/json").split(";")[0]?.trim().toLowerCase() ?? "";
  return { mediaType, text: Buffer.concat(chunks, bytes).toString("utf8") };
}

const YAML_TYPES: readonly string[] = ["application/yaml", "application/apply-patch+yaml"];
const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** The object in a POST, PUT or DELETE. Throws 415 for anything but JSON and YAML. */
export function parseObject(body: RequestBody): JsonObject {
  const value = parseValue(body, ["application/json", ...YAML_TYPES]);
  if (!isJsonObject(value)) throw badRequest("the body is no object");
  return value;
}

/** Any JSON (or YAML) value, if the media type is one of those allowed. */
export function parseValue(body: RequestBody, allowed: readonly string[]): unknown {
  if (body.mediaType === PROTOBUF) {
    throw unsupportedMediaType(
      "the embedded cluster takes no protobuf bodies, which kubectl sends for imperative commands such as `create namespace`; write the object to a file and use `kubectl apply -f`",
    );
  }
  if (!allowed.includes(body.mediaType)) {
    throw unsupportedMediaType(
      `the body of the request was in an unknown format (${body.mediaType}) - accepted media types include: ${allowed.join(", ")}`,
    );
  }
  try {
    // A YAML document with many aliases could grow without bound.
    return YAML_TYPES.includes(body.mediaType) && !body.text.trimStart().startsWith("{")
      ? parseYaml(body.text, { maxAliasCount: 100 })
      : JSON.parse(body.text);
  } catch (error) {
    throw badRequest(
      `the object provided is unrecognized (must be of type JSON or YAML): ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
