/** What options of the command line hold, with the error that names what is allowed. */
import { InvalidArgumentError, Option } from "commander";
import { formatDuration, parseDuration } from "../kernel/units.ts";

/** Without a default: commander would take it for given. */
export function collect(value: string, former: readonly string[] | undefined): readonly string[] {
  return [...(former ?? []), value];
}

export const zonesOption = () =>
  new Option("--zones <names>", "of the nodes, by turns").argParser(list).default(["zone-a", "zone-b"], "zone-a,zone-b");

export function list(text: string): string[] {
  const names = text.split(",").filter((name) => name !== "");
  if (names.length === 0) throw new InvalidArgumentError("Allowed: names separated by commas.");
  return names;
}

export function port(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || value > 65_535) throw new InvalidArgumentError("Allowed: a port from 0 to 65535.");
  return value;
}

export function count(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1 || value > 1000) throw new InvalidArgumentError("Allowed: a whole number from 1 to 1000.");
  return value;
}

export function whole(text: string): number {
  return text === "0" ? 0 : count(text);
}

/** Milliseconds for the command; in the help as people write it. */
export function durationOption(flags: string, description: string, otherwise: number): Option {
  return new Option(flags, description).argParser(duration).default(otherwise, formatDuration(otherwise));
}

export function duration(text: string): number {
  const value = parseDuration(text);
  if (value === undefined) throw new InvalidArgumentError(`Allowed: a duration such as ${formatDuration(90_000)}.`);
  return value;
}
