/** A pool is suspended, resumed, or asked how far that has come (T19, T20). */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { poolKey } from "../../model/pool.ts";
import { suspensionStatusSchema } from "../../model/suspension.ts";
import type { RouteContext } from "../app.ts";
import { nameOf } from "../callers.ts";

const params = z.object({ namespace: z.string().max(63), name: z.string().max(63) });
const by = z.string().min(1).max(100).optional().meta({ description: "who asks; what the caller's token says comes before it" });
const response = { 200: suspensionStatusSchema };

export const suspensionRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, log }) => {
  app.get(
    "/v1/pools/:namespace/:name/suspension",
    { schema: { summary: "Whether a pool is suspended, how far, and what goes on billing", params, response } },
    async ({ params: { namespace, name } }) => controlPlane.suspension({ pool: poolKey(namespace, name), deed: "status", drain: false }),
  );

  app.post(
    "/v1/pools/:namespace/:name/suspend",
    {
      schema: {
        summary: "Suspend a pool by its owner's own field; may be repeated, and goes on with what is left",
        params,
        body: z.strictObject({ by, drain: z.boolean().default(false) }),
        response,
      },
    },
    async ({ params: { namespace, name }, body, caller }) => {
      const pool = poolKey(namespace, name);
      log.warn({ event: "suspend", pool, by: nameOf(caller, body.by), drain: body.drain }, "an operator suspends a pool");
      return controlPlane.suspension({ pool, deed: "suspend", drain: body.drain });
    },
  );

  app.post(
    "/v1/pools/:namespace/:name/resume",
    { schema: { summary: "Resume a suspended pool with what it had", params, body: z.strictObject({ by }), response } },
    async ({ params: { namespace, name }, body, caller }) => {
      const pool = poolKey(namespace, name);
      log.warn({ event: "resume", pool, by: nameOf(caller, body.by) }, "an operator resumes a pool");
      return controlPlane.suspension({ pool, deed: "resume", drain: false });
    },
  );
};
