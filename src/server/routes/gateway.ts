/** What gateway replicas read and report: `model/membership.ts` on the wire. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { type ControllerLine, gatewayReportSchema } from "../../model/membership.ts";
import type { RouteContext } from "../app.ts";
import { assertOwnReplica } from "../callers.ts";
import type { GatewayLink } from "../control-plane.ts";
import { LineStream } from "../line-stream.ts";

const MAX_REPLICAS = 256;
const PING_EVERY_MS = 1_000;
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

const replica = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "lower-case letters, digits and dashes");

export const gatewayRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, clock, log }) => {
  const streams = new Map<string, LineStream>();
  app.addHook("preClose", async () => {
    for (const stream of streams.values()) stream.end();
  });

  app.get(
    "/gateway/v1/stream",
    {
      schema: {
        summary: "Membership of all routes, then what changes, as JSON lines",
        querystring: z.object({ replica, predecessor: replica.optional() }),
      },
    },
    async ({ query, caller }, reply) => {
      const id = query.replica;
      assertOwnReplica(caller, id);
      if (query.predecessor !== undefined) assertOwnReplica(caller, query.predecessor);
      const former = streams.get(id);
      if (former === undefined && streams.size >= MAX_REPLICAS)
        throw new RelevoError("too_many_streams", "Too many gateway replicas are connected.", { allowed: `${MAX_REPLICAS} at once` });
      former?.end();
      let link: GatewayLink | undefined;
      const ping: ControllerLine = { type: "ping" };
      const stream = new LineStream(reply.raw, { clock, pingEveryMs: PING_EVERY_MS, ping, maxBufferedBytes: MAX_BUFFERED_BYTES }, (why) => {
        link?.close();
        if (streams.get(id) === stream) streams.delete(id);
        log.info({ event: "gateway_stream_ended", replica: id, why }, "a gateway's stream ended");
      });
      streams.set(id, stream);
      try {
        link = await controlPlane.connectGateway(id, (line) => stream.send(line), query.predecessor);
      } catch (error) {
        if (streams.get(id) === stream) streams.delete(id);
        throw error;
      }
      reply.hijack();
      if (stream.isOver) link.close();
      stream.open();
      log.info({ event: "gateway_stream_opened", replica: id }, "a gateway replica is connected");
    },
  );

  app.post(
    "/gateway/v1/reports",
    { schema: { summary: "What a replica has applied and holds", body: gatewayReportSchema, response: { 204: z.null() } } },
    async ({ body, caller }, reply) => {
      assertOwnReplica(caller, body.replica);
      await controlPlane.receiveReport(body);
      return reply.code(204).send(null);
    },
  );
};
