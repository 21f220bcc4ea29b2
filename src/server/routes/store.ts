/** What is under the controller: the store, whether it was rewound and to go on with it; and the cluster. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import type { RouteContext } from "../app.ts";
import { nameOf } from "../callers.ts";
import { renderStore } from "../render.ts";
import { findingView, storeView } from "../views.ts";

export const storeRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, log }) => {
  app.get(
    "/v1/store",
    { schema: { summary: "Whether somebody has seen more of the store than is in it", response: { 200: storeView } } },
    async () => renderStore(await controlPlane.checkStore()),
  );

  app.get(
    "/v1/examination",
    {
      schema: {
        summary:
          "What is wrong with the cluster and the store: permissions, definitions, owners of nodes, who else acts there; changes nothing",
        response: { 200: z.object({ items: z.array(findingView) }) },
      },
    },
    async () => ({ items: (await controlPlane.examine()).map((finding) => ({ ...finding })) }),
  );

  app.post(
    "/v1/store/recover",
    {
      schema: {
        summary: "Go on with a store that was rewound: raises the era above all that was seen; every writer lease ends",
        body: z.strictObject({
          why: z.string().min(1).max(500),
          by: z.string().min(1).max(100).optional().meta({ description: "who asks; what the caller's token says comes before it" }),
          force: z.boolean().default(false).meta({ description: "also when no witness says that it was rewound" }),
        }),
        response: { 200: storeView },
      },
    },
    async ({ body, caller }) => {
      const command = { ...body, by: nameOf(caller, body.by) };
      const state = await controlPlane.recoverStore(command);
      log.warn(
        { event: "store_recovered", era: state.era, by: command.by, why: body.why, force: body.force },
        "an operator recovered the store",
      );
      return renderStore(state);
    },
  );
};
