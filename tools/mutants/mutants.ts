/** The faults. Each breaks one rule of the program; equivalent ones, which change nothing that anybody could see, are not here. */
import type { Mutant } from "./mutant.ts";
import { ACT } from "./rows/act.ts";
import { EVACUATION } from "./rows/evacuation.ts";
import { GATEWAY } from "./rows/gateway.ts";
import { OPERATOR } from "./rows/operator.ts";
import { PLAN } from "./rows/plan.ts";
import { STORE } from "./rows/store.ts";
import { UNSHOWN } from "./rows/unshown.ts";
import { WATCHED } from "./rows/watched.ts";
import { WRITERS } from "./rows/writers.ts";

export const MUTANTS: readonly Mutant[] = [...ACT, ...PLAN, ...STORE, ...GATEWAY, ...WRITERS, ...OPERATOR, ...EVACUATION, ...WATCHED];

/** Not counted. */
export { UNSHOWN };
