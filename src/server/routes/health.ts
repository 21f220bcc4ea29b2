/** Is it alive, is it ready, what does it count, what does it speak. Open to all: nothing here is secret, and probes have no token. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import type { RouteContext } from "../app.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { Metrics } from "../metrics.ts";
import { healthView, readinessView } from "../views.ts";

/** What is a state and no event is read when it is asked for. What cannot be read now keeps its last value: a scrape never fails for it. */
async function refresh(controlPlane: ControlPlane, metrics: Metrics, now: Instant): Promise<void> {
  metrics.setSenders(controlPlane.listSenders(), now);
  const [cordons, gateways, readiness] = await Promise.allSettled([
    controlPlane.listCordons(),
    controlPlane.listGateways(),
    controlPlane.readiness(),
  ]);
  if (cordons.status === "fulfilled") metrics.setOwnCordons(cordons.value.map(({ node }) => node));
  if (gateways.status === "fulfilled") {
    const silent = gateways.value.filter((gateway) => gateway.silent).length;
    metrics.setGatewayReplicas(gateways.value.length - silent, silent);
    metrics.setRoutes(gateways.value.flatMap(({ replica, routes }) => routes.map(({ route, counts }) => ({ route, replica, counts }))));
  }
  if (readiness.status === "fulfilled") metrics.setReady(readiness.value.checks);
}

export const healthRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, metrics, clock, options }) => {
  app.get("/healthz", { schema: { summary: "Alive, and the controller's time", response: { 200: healthView } } }, async () => ({
    ok: true,
    now: formatInstant(clock.now()),
    version: options.version,
  }));

  app.get(
    "/readyz",
    { schema: { summary: "Ready to decide and to act", response: { 200: readinessView, 503: readinessView } } },
    async (_request, reply) => {
      const { ready, checks } = await controlPlane.readiness();
      return reply.code(ready ? 200 : 503).send({ ready, checks: checks.map((check) => ({ ...check })) });
    },
  );

  app.get("/metrics", { schema: { summary: "Prometheus metrics" } }, async (_request, reply) => {
    await refresh(controlPlane, metrics, clock.now());
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });

  app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());
};
