/** Who the server takes the caller for. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import type { RouteContext } from "../app.ts";
import { whoamiView } from "../views.ts";

export const callerRoutes: FastifyPluginAsyncZod<RouteContext> = async (app) => {
  app.get(
    "/v1/whoami",
    { schema: { summary: "Who the caller is, and with which role", response: { 200: whoamiView } } },
    async ({ caller }) => ({
      name: caller.name,
      role: caller.kind === "person" ? caller.role : null,
    }),
  );
};
