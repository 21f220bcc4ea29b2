/** The one token of RELEVO_TOKEN, or what its file tells now (undefined: there is none, and nobody is let in): whoever has it may do everything, and says their own name. */
import { isSameSecret } from "./access.ts";
import { ANYBODY_HERE, type Authenticator } from "./callers.ts";

export function oneToken(token: string | (() => string | undefined)): Authenticator {
  return {
    identify: async (given) => {
      const wanted = typeof token === "string" ? token : token();
      return wanted !== undefined && isSameSecret(given, wanted) ? ANYBODY_HERE : undefined;
    },
  };
}
