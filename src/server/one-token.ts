/** The one token of RELEVO_TOKEN: whoever has it may do everything, and says their own name. */
import { isSameSecret } from "./access.ts";
import { ANYBODY_HERE, type Authenticator } from "./callers.ts";

export function oneToken(token: string): Authenticator {
  return { identify: async (given) => (isSameSecret(given, token) ? ANYBODY_HERE : undefined) };
}
