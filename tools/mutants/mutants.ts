/**
 * The faults. Each breaks one rule of the program. Not here, because they change nothing that anybody could see, also when two lines of defence fall at once:
 * - A lease that is passed without a comparison of its epoch: one authority commits at a time, its passes one after the other, and who still may write keeps it.
 * - A gateway that passes on stale answers, or lowers a tombstone: the generation that raises the tombstone also takes the former writer out, and what it held is
 *   asked again elsewhere. An older generation, which alone could lower one, is refused as a whole.
 * - A gateway that compares the tombstone of one place with that of another: an instance has another place only after a recovery of the store, and whatever is
 *   granted from then on is of a newer era than any tombstone before it.
 * - A step that is recorded again with another payload: its id names what it does, and an open step is gone on with as it was recorded.
 * - A standby that is taken twice: its place is granted to one evacuee, a plan decides once about an instance, and the store compares its purpose.
 */
import type { Mutant } from "./mutant.ts";
import { ACT } from "./rows/act.ts";
import { CONTROLLERS } from "./rows/controllers.ts";
import { EVACUATION } from "./rows/evacuation.ts";
import { GATEWAY } from "./rows/gateway.ts";
import { NOTICES } from "./rows/notices.ts";
import { OPERATOR } from "./rows/operator.ts";
import { PLAN } from "./rows/plan.ts";
import { SCALING } from "./rows/scaling.ts";
import { STORE } from "./rows/store.ts";
import { WATCHED } from "./rows/watched.ts";
import { WRITERS } from "./rows/writers.ts";

export const MUTANTS: readonly Mutant[] = [
  ...ACT,
  ...PLAN,
  ...STORE,
  ...GATEWAY,
  ...WRITERS,
  ...OPERATOR,
  ...NOTICES,
  ...EVACUATION,
  ...WATCHED,
  ...CONTROLLERS,
  ...SCALING,
];
