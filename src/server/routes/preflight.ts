/** Whether a pool's size could be left to Relevo, found out before it is. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { effectReportSchema } from "../../model/effect.ts";
import { poolKey, poolSchema } from "../../model/pool.ts";
import { parseDocument } from "../../model/problems.ts";
import type { RouteContext } from "../app.ts";
import { followedView, preflightView } from "../scale-views.ts";

const poolPath = z.object({ namespace: z.string().max(63), name: z.string().max(63) });
const answer = { 200: z.object({ items: z.array(preflightView) }) };

export const preflightRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane }) => {
  app.get(
    "/v1/pools/:namespace/:name/check",
    {
      schema: {
        summary: "Preflight of a pool at each of its sites; calls its signal's source, changes nothing",
        params: poolPath,
        response: answer,
      },
    },
    async ({ params }) => ({ items: [...(await controlPlane.preflight(poolKey(params.namespace, params.name)))] }),
  );

  app.get(
    "/v1/pools/:namespace/:name/effect",
    {
      schema: {
        summary: "How far each setting of a pool's instances has come; asks their processes, changes nothing",
        params: poolPath,
        response: { 200: effectReportSchema },
      },
    },
    async ({ params }) => await controlPlane.proveEffect(poolKey(params.namespace, params.name)),
  );

  app.get(
    "/v1/pools/:namespace/:name/followed",
    {
      schema: { summary: "What a pool's size follows", params: poolPath, response: { 200: followedView } },
    },
    async ({ params }) => {
      const pool = poolKey(params.namespace, params.name);
      const { sites, scale, worker, size } = await controlPlane.specOf(pool);
      if (scale === undefined)
        throw new RelevoError("scale_missing", `The size of pool ${pool} follows nothing.`, {
          found: "no spec.scale",
          todo: "give its document a spec.scale (docs/scaling.md)",
        });
      const { signal, target, tolerance } = scale;
      const { floor, max } = size;
      return { sites: [...sites], flow: worker.flow ?? null, signal, target, tolerance, stuckAfterMs: worker.stuckAfter, floor, max };
    },
  );

  app.post(
    "/v1/check",
    {
      schema: {
        summary: "The same of a document that is not applied",
        body: z.record(z.string(), z.unknown()).meta({ description: "the document, as in YAML" }),
        response: answer,
      },
    },
    async ({ body }) => ({ items: [...(await controlPlane.preflight(parseDocument(poolSchema, body)))] }),
  );
};
