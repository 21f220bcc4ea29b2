/** Sizes of pools: their changes, what was proven of them, and what was promoted before its gate. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { poolKey } from "../../model/pool.ts";
import { promotionDraftSchema } from "../../model/promotion.ts";
import type { RouteContext } from "../app.ts";
import { nameOf } from "../callers.ts";
import { renderException, renderProven, renderScaleChange } from "../scale-render.ts";
import { exceptionView, provenBody, provenView, scaleChangeView } from "../scale-views.ts";

const limit = z.coerce.number().int().min(1).max(1000).default(100);
const recordQuery = z.object({ pool: z.string().max(100).optional(), limit });
const by = z.string().min(1).max(100).optional().meta({ description: "who asks; what the caller's token says comes before it" });
const poolPath = z.object({ namespace: z.string().max(63), name: z.string().max(63) });

export const scaleRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, log }) => {
  app.get(
    "/v1/scale",
    {
      schema: {
        summary: "Changes of size, newest first",
        querystring: recordQuery,
        response: { 200: z.object({ items: z.array(scaleChangeView) }) },
      },
    },
    async ({ query }) => ({ items: (await controlPlane.listScaleChanges(query)).map(renderScaleChange) }),
  );

  app.put(
    "/v1/pools/:namespace/:name/proven",
    {
      schema: {
        summary: "What a load test has shown of the pool as it is configured now",
        params: poolPath,
        body: provenBody.extend({ by }),
        response: { 200: provenView },
      },
    },
    async ({ params, body: { by: given, ...draft }, caller }) => {
      const pool = poolKey(params.namespace, params.name);
      const proven = await controlPlane.recordProven(pool, draft, nameOf(caller, given));
      log.info({ event: "proven", pool, ...proven }, "a load test has shown what a pool can do");
      return renderProven(proven);
    },
  );

  app.get(
    "/v1/exceptions",
    {
      schema: {
        summary: "What was promoted before its gate, newest first",
        querystring: recordQuery,
        response: { 200: z.object({ items: z.array(exceptionView) }) },
      },
    },
    async ({ query }) => ({ items: (await controlPlane.listExceptions(query)).map(renderException) }),
  );

  app.post(
    "/v1/pools/:namespace/:name/exceptions",
    {
      schema: {
        summary: "Something is promoted before its gate: an exception with follow-ups, never a pass",
        params: poolPath,
        body: promotionDraftSchema.extend({ by }),
        response: { 200: exceptionView },
      },
    },
    async ({ params, body: { by: given, ...draft }, caller }) => {
      const exception = await controlPlane.recordException(poolKey(params.namespace, params.name), draft, nameOf(caller, given));
      log.warn({ event: "exception", ...exception }, "something was promoted before its gate");
      return renderException(exception);
    },
  );

  app.post(
    "/v1/exceptions/:exception/follow-ups/:index/done",
    {
      schema: {
        summary: "A follow-up of an exception is done",
        params: z.object({ exception: z.string().max(100), index: z.coerce.number().int().min(0).max(100) }),
        response: { 200: exceptionView },
      },
    },
    async ({ params, caller }) => {
      const exception = await controlPlane.finishFollowUp(params.exception, params.index);
      log.info({ event: "follow_up_done", ...params, by: nameOf(caller, undefined) }, "a follow-up is done");
      return renderException(exception);
    },
  );
};
