/** The settings in the files of a Trino server, and by which kind of key each is proven. Pure. */
import { z } from "zod";
import type { EffectKey, KeyKind, TrinoRole } from "../../model/effect.ts";

export interface Setting extends EffectKey {
  /** Of a JVM option the whole of it. */
  readonly value: string;
}

export const JVM_CONFIG = "jvm.config";
export const EXCHANGE_MANAGER = "exchange-manager.properties";
const ACCESS_CONTROL = "access-control.properties";
/** Which file of rules it names is said in it; this is what we know such a file by. */
const SESSION_RULES = /^session-property-[\w.-]*\.json$/;

/** Of a file by its path beneath the configuration folder; none of a file that holds no settings. */
export function settingsOf(role: TrinoRole, file: string, text: string): readonly Setting[] {
  if (file === JVM_CONFIG)
    return jvmOptionsOf(text).map((option) => ({ kind: "jvm", role, file, name: nameOfOption(option), value: option }));
  if (SESSION_RULES.test(file)) return sessionDefaultsOf(text).map(([name, value]) => ({ kind: "session", role, file, name, value }));
  if (!file.endsWith(".properties")) return [];
  return propertiesOf(text).map(([name, value]) => ({ kind: kindOfFile(file), role, file, name, value }));
}

export function kindOfFile(file: string): KeyKind {
  if (file === JVM_CONFIG) return "jvm";
  if (file === EXCHANGE_MANAGER) return "exchange";
  if (file === ACCESS_CONTROL) return "access";
  return SESSION_RULES.test(file) ? "session" : "config";
}

/** Java's properties as Trino's files use them: `name=value`, `#` begins a comment; the last one of a name counts. */
export function propertiesOf(text: string): readonly (readonly [name: string, value: string])[] {
  const found = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, name, value = ""] = /^\s*([^#!\s=:][^=:\s]*)\s*[=:]?\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined) found.set(name, value);
  }
  return [...found];
}

export function jvmOptionsOf(text: string): readonly string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  return lines.filter((line) => line.startsWith("-"));
}

/** `-Xmx1g` → `-Xmx`; `-XX:+UseG1GC` and `-XX:-UseG1GC` are one option; `-Dname=value` → `-Dname`. Those with two dashes may be given several times: each is its own. */
export function nameOfOption(option: string): string {
  if (option.startsWith("--")) return option;
  const flag = /^-XX:[+-](.+)$/.exec(option);
  if (flag) return `-XX:${flag[1]}`;
  const sized = /^-(?:Xmx|Xms|Xss|Xmn)/.exec(option);
  if (sized) return sized[0];
  return option.split("=", 1)[0] ?? option;
}

const rulesSchema = z.array(z.looseObject({ sessionProperties: z.record(z.string(), z.string()) }));

/** Of rules that hold for everybody: what others get cannot be seen by one who asks as himself. */
function sessionDefaultsOf(text: string): readonly (readonly [string, string])[] {
  const found = new Map<string, string>();
  for (const { sessionProperties, ...conditions } of parseRules(text))
    if (Object.keys(conditions).length === 0) for (const [name, value] of Object.entries(sessionProperties)) found.set(name, value);
  return [...found];
}

function parseRules(text: string): z.output<typeof rulesSchema> {
  try {
    return rulesSchema.safeParse(JSON.parse(text)).data ?? [];
  } catch {
    return []; // no JSON: the server itself does not start with it
  }
}

const SECRET = /secret|password|access-key|token|credential/i;

/** What may be shown of it. */
export function shownValue({ name, file }: Pick<Setting, "name" | "file">, value: string): string {
  return SECRET.test(name) || file.includes("password") ? "(not shown)" : value;
}
