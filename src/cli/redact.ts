/** Takes secrets out of what is shown to others: by the names of fields, by the forms that secrets have, and by what is known to be one. */

export const REDACTED = "[redacted]";

const SECRET_FIELD = /(token|secret|password|passwd|authorization|cookie|signature|credential|api[-_]?key|private[-_]?key)/i;
/** Fields whose names only sound so. */
const HARMLESS_FIELDS = new Set(["secretName", "tokens"]);
/** A known secret that is shorter would be found in words. */
const MIN_KNOWN_CHARS = 6;

const FORMS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${REDACTED}`],
  // a token of Kubernetes or of OpenID Connect
  [/\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/g, REDACTED],
  // user:password@ in a URL
  [/(\b[a-z][\w+.-]*:\/\/[^\s:/@]*):[^\s/@]+@/gi, `$1:${REDACTED}@`],
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, REDACTED],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, REDACTED],
  // name=value and "name":"value" inside of a text
  [/((?:token|secret|password|passwd|signature|api[-_]?key)["']?\s*[=:]\s*["']?)[^\s"'&,;}]+/gi, `$1${REDACTED}`],
  [/\bsha256=[0-9a-f]{64}\b/g, `sha256=${REDACTED}`],
];

/** The same value without secrets; texts, lists and mappings of any depth. */
export function redactor(known: readonly string[]): <T>(value: T) => T {
  const secrets = known.filter((secret) => secret.length >= MIN_KNOWN_CHARS).toSorted((a, b) => b.length - a.length);
  const inText = (text: string): string => {
    let clean = text;
    for (const secret of secrets) clean = clean.replaceAll(secret, REDACTED);
    for (const [form, instead] of FORMS) clean = clean.replaceAll(form, instead);
    return clean;
  };
  const clean = (value: unknown, isSecret = false): unknown => {
    if (typeof value === "string") return isSecret ? REDACTED : inText(value);
    if (Array.isArray(value)) return value.map((each) => clean(each, isSecret));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, clean(each, isSecret || (SECRET_FIELD.test(name) && !HARMLESS_FIELDS.has(name)))]),
    );
  };
  return ((value: unknown) => clean(value)) as <T>(value: T) => T;
}
