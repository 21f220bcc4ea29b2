/** What went ahead of its gate, until what was to be done about it is done (K10). */
import { bad, type Finding } from "../../model/finding.ts";
import { exceptionView } from "../../server/scale-views.ts";
import type { ControllerClient } from "../client.ts";

const MAX_LISTED = 1_000;

export async function checkExceptions(client: ControllerClient): Promise<readonly Finding[]> {
  const open = (await client.list(`/v1/exceptions?limit=${MAX_LISTED}`, exceptionView)).filter((each) => each.open);
  return open.map(({ id, pool, what, gate, at, followUps }) => {
    const left = followUps.filter(({ doneAt }) => doneAt === null).map((each) => each.what);
    return bad(
      "gates",
      "held",
      `${what} (pool ${pool}) went ahead of ${gate} on ${at}; still to be done: ${left.join("; ")}`,
      `do it, then npx relevo promote --done ${id}`,
    );
  });
}
