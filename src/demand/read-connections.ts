/**
 * The file of connections: YAML, with secrets filled in from the environment and from files, so that it can be kept without one in it. Whatever is wrong is told by
 * line and field; what is in a field is never shown.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type Document, isNode, LineCounter, parseDocument } from "yaml";
import { RelevoError } from "../kernel/errors.ts";
import { formatPath, problemsOf } from "../model/problems.ts";
import { type Connection, connectionsSchema } from "./connections.ts";

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_SECRET_BYTES = 64 * 1024;
const REFERENCE = /\$\{(env|file):([^}]*)\}/g;

type Path = readonly (string | number)[];

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** At most `mostBytes` and one more, by which more is seen. */
  readonly read: (path: string, mostBytes: number) => Buffer;
}

/** Throws `connections_invalid`. */
export function readConnections(path: string, env: Surroundings["env"]): readonly Connection[] {
  const surroundings: Surroundings = { env, read: readRegularFile };
  let text: Buffer;
  try {
    text = surroundings.read(path, MAX_FILE_BYTES);
  } catch (cause) {
    throw invalid(`${path}: it cannot be read`, cause);
  }
  if (text.length > MAX_FILE_BYTES) throw invalid(`${path}: it is larger than 1 MiB`);
  return parseConnections(text.toString("utf8"), path, surroundings);
}

/** `file` is how errors name it. */
export function parseConnections(text: string, file: string, surroundings: Surroundings): readonly Connection[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: "error" });
  const [broken] = document.errors;
  if (broken !== undefined) {
    const { line, col } = broken.linePos?.[0] ?? { line: 1, col: 1 };
    throw invalid(`${file}:${line}:${col}: this is not YAML (${broken.code})`);
  }
  const at = (path: Path): string => {
    let place = document.contents?.range?.[0] ?? 0;
    for (let length = 1; length <= path.length; length += 1) {
      const node = document.getIn(path.slice(0, length), true);
      if (!isNode(node)) break;
      place = node.range?.[0] ?? place;
    }
    const { line, col } = lines.linePos(place);
    return `${file}:${line}:${col}`;
  };
  const fill = (value: unknown, path: Path): unknown => {
    if (typeof value === "string") return filled(value, surroundings, (why) => invalid(`${at(path)}: ${formatPath(path)}: ${why}`));
    if (Array.isArray(value)) return value.map((each, index) => fill(each, [...path, index]));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fill(each, [...path, key])]));
  };
  const input = fill(plain(document, file) ?? { connections: [] }, []);
  const parsed = connectionsSchema.safeParse(input);
  if (parsed.success) return parsed.data.connections;
  const problems = problemsOf(connectionsSchema, parsed.error, input).map(
    ({ path, sentence, allowed }) => `${at(path)}: ${sentence}${allowed === undefined ? "" : ` (allowed: ${allowed})`}`,
  );
  throw invalid(problems.join("; "));
}

/** Without aliases: what they stand for may be without end. */
function plain(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (cause) {
    throw invalid(`${file}: it has YAML aliases, which are not taken here`, cause);
  }
}

/** A pipe would hold the caller up for ever, and a device has no end. */
function readRegularFile(path: string, mostBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is no regular file`);
    const bytes = Buffer.alloc(mostBytes + 1);
    let filled = 0;
    for (let read = -1; read !== 0 && filled < bytes.length; filled += read)
      read = readSync(file, bytes, filled, bytes.length - filled, null);
    return bytes.subarray(0, filled);
  } finally {
    closeSync(file);
  }
}

function filled(text: string, { env, read }: Surroundings, refuse: (why: string) => RelevoError): string {
  return text.replaceAll(REFERENCE, (_, where: string, name: string) => {
    if (where === "env") {
      const value = env[name];
      if (value === undefined || value === "") throw refuse(`the environment has no ${name}`);
      return value;
    }
    let secret: Buffer;
    try {
      secret = read(name, MAX_SECRET_BYTES);
    } catch {
      throw refuse(`the file ${name} cannot be read`);
    }
    if (secret.length > MAX_SECRET_BYTES) throw refuse(`the file ${name} is larger than 64 KiB`);
    return secret.toString("utf8").replace(/\r?\n$/, "");
  });
}

function invalid(sentence: string, cause?: unknown): RelevoError {
  return new RelevoError("connections_invalid", sentence, {
    cause,
    todo: "see docs/scaling.md for what a connection of each kind has",
  });
}
