/** What a command was given, with the global options. */
import type { Command } from "commander";
import type { GlobalOptions } from "./context.ts";

/** The options of a command with the global ones. */
export function optionsOf<T extends GlobalOptions>(command: Command): T {
  return { ...command.opts(), ...command.parent?.opts() } as T;
}

/** Of a command below a command. */
export function optionsOfNested<T extends GlobalOptions>(command: Command): T {
  return { ...command.opts(), ...command.parent?.parent?.opts() } as T;
}
