/** A Pool takes the replica count of its target over, or gives it back (K3). */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { formatInstant } from "../../kernel/clock.ts";
import { deedOf } from "../../model/scale-owner.ts";
import { poolKey } from "../../model/pool.ts";
import { adoptionView } from "../adoption-view.ts";
import type { AdoptionResult } from "../adoption-state.ts";
import type { RouteContext } from "../app.ts";
import { nameOf } from "../callers.ts";

const by = z.string().min(1).max(100).optional().meta({ description: "who asks; what the caller's token says comes before it" });
const text = z.string().min(1).max(253);

export const adoptionRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, log }) => {
  app.post(
    "/v1/pools/:namespace/:name/adopt",
    {
      schema: {
        summary: "Own the replica count of the pool's target; who owns it now is named, and removed only by name and UID",
        params: z.object({ namespace: z.string().max(63), name: z.string().max(63) }),
        body: z.strictObject({
          by,
          removeOwner: z.strictObject({ kind: text, name: text, uid: text }).nullable().default(null),
          acceptManagers: z.array(text).max(20).default([]),
          release: z.boolean().default(false),
          dryRun: z.boolean().default(false),
        }),
        response: { 200: adoptionView },
      },
    },
    async ({ params, body: { release, by: given, ...asked }, caller }) => {
      const pool = poolKey(params.namespace, params.name);
      const who = nameOf(caller, given);
      const result = release ? await controlPlane.releaseTarget(pool, who) : await controlPlane.adopt({ ...asked, pool, by: who });
      log.warn(
        {
          event: release ? "release_target" : "adopt",
          pool,
          by: who,
          dryRun: asked.dryRun,
          removed: result.removed,
          outcome: result.outcome,
        },
        "an operator decided on the owner of a replica count",
      );
      return render(result);
    },
  );
};

function render({ at, owners, ...result }: AdoptionResult): z.output<typeof adoptionView> {
  return {
    ...result,
    at: formatInstant(at),
    owners: owners.map((owner) => ({ kind: owner.kind, name: owner.name, uid: owner.uid, does: deedOf(owner) })),
  };
}
