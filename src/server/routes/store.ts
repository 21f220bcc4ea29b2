/** The store itself: whether it was rewound, and to go on with it. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import type { RouteContext } from "../app.ts";
import { renderStore } from "../render.ts";
import { storeView } from "../views.ts";

export const storeRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, log }) => {
  app.get(
    "/v1/store",
    { schema: { summary: "Whether somebody has seen more of the store than is in it", response: { 200: storeView } } },
    async () => renderStore(await controlPlane.checkStore()),
  );

  app.post(
    "/v1/store/recover",
    {
      schema: {
        summary: "Go on with a store that was rewound: raises the era above all that was seen; every writer lease ends",
        body: z.strictObject({
          why: z.string().min(1).max(500),
          by: z.string().min(1).max(100).meta({ description: "who asks; not verified" }),
          force: z.boolean().default(false).meta({ description: "also when no witness says that it was rewound" }),
        }),
        response: { 200: storeView },
      },
    },
    async ({ body }) => {
      const state = await controlPlane.recoverStore(body);
      log.warn(
        { event: "store_recovered", era: state.era, by: body.by, why: body.why, force: body.force },
        "an operator recovered the store",
      );
      return renderStore(state);
    },
  );
};
