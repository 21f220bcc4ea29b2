/**
 * Where an instance renews its writer lease. It shows the token that its admission gave it, which is good for this pool, instance and process alone; who has
 * none learns nothing, and the store is not asked.
 */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { RelevoError } from "../../kernel/errors.ts";
import { leaseGrantSchema, leaseRenewalSchema } from "../../model/protocol.ts";
import { bearerOf } from "../access.ts";
import type { RouteContext } from "../app.ts";

export const RENEW_PATH = "/v1/leases/renew";
const MAX_BODY_BYTES = 4_096;

export const leaseRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, leaseTokens }) => {
  app.post(
    RENEW_PATH,
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        summary: "Renew a writer lease; with the lease token that the instance got with its admission",
        body: leaseRenewalSchema,
        response: { 200: leaseGrantSchema },
      },
    },
    async ({ body, headers }) => {
      const token = bearerOf(headers.authorization);
      if (token === undefined || leaseTokens?.isOf(token, body) !== true)
        throw new RelevoError("lease_token_invalid", "The lease token is missing, or is that of another process.", {
          allowed: "authorization: Bearer <the token of the admission>",
        });
      return controlPlane.renewLease(body);
    },
  );
};
