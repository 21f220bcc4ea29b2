/** The password of a connection where nobody gave one: PGPASSWORD, else the file of PGPASSFILE or `~/.pgpass`, as PostgreSQL's own programs have it. */
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { PostgresTarget } from "./postgres-url.ts";

const OTHERS = 0o077;

/** Read anew for each connection, so that a password may change. Undefined: there is none. */
export function passwordFor({ host, port, database, user }: PostgresTarget): string | undefined {
  const given = process.env["PGPASSWORD"];
  if (given !== undefined && given !== "") return given;
  const wanted = [host.startsWith("/") ? "localhost" : host, String(port), database, user];
  for (const line of readPassFile().split("\n")) {
    const fields = fieldsOf(line);
    const password = fields[wanted.length];
    if (password !== undefined && wanted.every((value, index) => fields[index] === "*" || fields[index] === value)) return password;
  }
  return undefined;
}

/** Empty where there is none, or where others may read it: PostgreSQL's programs do not take such a file either. */
function readPassFile(): string {
  const path = process.env["PGPASSFILE"] ?? join(homedir(), ".pgpass");
  try {
    return (statSync(path).mode & OTHERS) === 0 ? readFileSync(path, "utf8") : "";
  } catch {
    return ""; // it is not there: nearly nobody has one
  }
}

/** Parted by colons; a backslash keeps what follows it. Empty for a comment. */
function fieldsOf(line: string): readonly string[] {
  if (line.startsWith("#")) return [];
  return [...line.trimEnd().matchAll(/(?:^|:)((?:\\.|[^:\\])*)/g)].map(([, field]) => (field ?? "").replaceAll(/\\(.)/g, "$1"));
}
