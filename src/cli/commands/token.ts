/** `relevo token create`: a new token, told once, and the line by which a controller knows it. Nothing is written anywhere. */
import { stringify } from "yaml";
import { newSecret } from "../../kernel/system.ts";
import { tokenHashOf, tokenName, type TokenRole } from "../../server/access.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";

export interface TokenOptions extends GlobalOptions {
  readonly name: string;
  readonly role: TokenRole;
}

export async function createToken(context: CliContext, options: TokenOptions): Promise<ExitCode> {
  const name = tokenName.safeParse(options.name);
  if (!name.success)
    throw new UsageError("name_invalid", "--name is not valid.", {
      found: options.name,
      allowed: name.error.issues[0]?.message ?? "a name",
    });
  const token = newSecret();
  const entry = { name: options.name, role: options.role, tokenHash: tokenHashOf(token) };
  const document = renderDocument({ token, entry }, options.output);
  context.out(
    document ?? `token, shown this once:\n${token}\n\nfor the controller's --token-file:\n${stringify([entry], { lineWidth: 0 })}`,
  );
  return EXIT.done;
}
