/** The key of the lease tokens: made once, readable by its owner alone, the same after each restart, or no instance could renew any more. */
import { chmodSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { RelevoError } from "../kernel/errors.ts";
import { newSecret } from "../kernel/system.ts";

const LEAST_CHARACTERS = 32;
const OTHERS = 0o077;

/** Makes it when it is not there. Errors: `lease_key_unusable`. */
export function leaseKeyIn(path: string): string {
  try {
    if (!existsSync(path)) make(path);
    if ((statSync(path).mode & OTHERS) !== 0) chmodSync(path, 0o600);
    const key = readFileSync(path, "utf8").trim();
    if (key.length >= LEAST_CHARACTERS) return key;
  } catch (cause) {
    throw unusable(path, "it cannot be read or made", cause);
  }
  throw unusable(path, `it holds fewer than ${LEAST_CHARACTERS} characters`, undefined);
}

/** Of a file that somebody else made and may have mounted read-only, the same for all replicas. Errors: `lease_key_unusable`. */
export function givenLeaseKey(path: string): string {
  let key: string;
  try {
    key = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw unusable(path, "it cannot be read", cause);
  }
  if (key.length < LEAST_CHARACTERS) throw unusable(path, `it holds fewer than ${LEAST_CHARACTERS} characters`, undefined);
  return key;
}

/** On a full disk, and after a loss of power, there is no key rather than half of one. */
function make(path: string): void {
  writeFileSync(`${path}.new`, `${newSecret()}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

function unusable(path: string, why: string, cause: unknown): RelevoError {
  return new RelevoError("lease_key_unusable", `the key of the lease tokens, ${path}, cannot be used: ${why}`, {
    cause,
    todo: "give the file to the user that runs the controller; without it a new one is made, and every instance that writes must be replaced",
  });
}
