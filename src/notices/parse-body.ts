/** From text to checked values; everything that is wrong becomes a NoticeError with its field. */
import { z } from "zod";
import { excerpt, MAX_NOTICE_BYTES, NoticeError } from "./notice.ts";

/** The object that a message holds. */
export function parseNoticeBody(body: string): Readonly<Record<string, unknown>> {
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_NOTICE_BYTES)
    throw new NoticeError("notice_too_large", "", "the message is too long", {
      found: `${bytes} bytes`,
      allowed: `${MAX_NOTICE_BYTES} bytes`,
    });
  return parseObject(body, "");
}

/** `path` is where the text was found in the message. */
export function parseObject(text: string, path: string): Readonly<Record<string, unknown>> {
  const what = path === "" ? "the message" : "the text";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new NoticeError("notice_malformed", path, `${what} is not JSON`, { found: excerpt(text), allowed: "one JSON object" });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new NoticeError("notice_malformed", path, `${what} is no JSON object`, { found: excerpt(value), allowed: "one JSON object" });
  return value as Readonly<Record<string, unknown>>;
}

/** `prefix` is where the value was found in the message. */
export function parseWith<S extends z.ZodType>(schema: S, value: unknown, prefix: readonly string[] = []): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path ?? [];
  throw new NoticeError("notice_malformed", [...prefix, ...path].map(String).join("."), issue?.message ?? "is not valid", {
    found: excerpt(valueAt(value, path)),
  });
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null && Object.hasOwn(at, key) ? (at as Record<PropertyKey, unknown>)[key] : undefined),
    value,
  );
}

/** An EC2 instance id. */
export const ec2InstanceId = z.string().regex(/^i-[0-9A-Za-z-]{1,64}$/, "an instance id such as i-0123456789abcdef0");
