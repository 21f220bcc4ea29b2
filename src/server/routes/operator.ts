/** What an operator may ask for. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { formatInstant } from "../../kernel/clock.ts";
import { parseDuration } from "../../kernel/units.ts";
import type { KubeObjectDraft } from "../../kube/api.ts";
import { poolSchema } from "../../model/pool.ts";
import { parseDocument } from "../../model/problems.ts";
import type { RouteContext } from "../app.ts";
import { nameOf } from "../callers.ts";
import { renderForcedSeal, renderFreeze } from "../render.ts";
import { applyView, forcedSealView, unfrozenView } from "../views.ts";

const by = z.string().min(1).max(100).optional().meta({ description: "who asks; what the caller's token says comes before it" });
const why = z.string().min(1).max(500);
const poolOrAll = z.string().max(100).nullable().meta({ description: "namespace/name; null means all" });
const forHowLong = z
  .string()
  .regex(/^(\d+(?:ms|s|m|h|d))+$/, "a duration such as 90s, 2h or 1h30m")
  .meta({ description: "a duration such as 2h" });
const MAX_FREEZE_MS = 30 * 24 * 3_600_000;
const MAX_EXCEPTION_MS = 90 * 24 * 3_600_000;

export const operatorRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, clock, log }) => {
  app.post(
    "/v1/apply",
    {
      schema: {
        summary: "Create or replace a Pool",
        body: z.record(z.string(), z.unknown()).meta({ description: "the document, as in YAML" }),
        querystring: z.object({ dryRun: z.enum(["true", "false"]).default("false") }),
        response: { 200: applyView },
      },
    },
    async ({ body, query, caller }) => {
      const parsed = parseDocument(poolSchema, body);
      const dryRun = query.dryRun === "true";
      const result = await controlPlane.apply(body as unknown as KubeObjectDraft, parsed, { dryRun });
      log.info({ event: "apply", pool: result.pool, result: result.result, dryRun, by: nameOf(caller, undefined) }, "a pool was applied");
      return { ...result, dryRun };
    },
  );

  app.post(
    "/v1/instances/:instance/drain",
    {
      schema: {
        summary: "Replace an instance and let it finish",
        params: z.object({ instance: z.string().max(100) }),
        body: z.strictObject({ by, why }),
        response: { 200: z.object({ evidence: z.string() }) },
      },
    },
    async ({ params, body, caller }) => {
      const command = { instance: params.instance, why: body.why, by: nameOf(caller, body.by) };
      const { evidence } = await controlPlane.drain(command);
      log.info({ event: "drain", ...command }, "an operator asked for a drain");
      return { evidence };
    },
  );

  app.post(
    "/v1/nodes/:node/uncordon",
    {
      schema: {
        summary: "Take back a cordon of Relevo's own",
        params: z.object({ node: z.string().max(253) }),
        body: z.strictObject({ by }),
        response: { 200: z.object({ node: z.string() }) },
      },
    },
    async ({ params, body, caller }) => {
      const who = nameOf(caller, body.by);
      await controlPlane.uncordon(params.node, who);
      log.info({ event: "uncordon", node: params.node, by: who }, "an operator took a cordon back");
      return { node: params.node };
    },
  );

  app.post(
    "/v1/release",
    {
      schema: {
        summary: "A held step ends without consequences, and what is to be done is decided anew",
        body: z.strictObject({ operation: z.string().min(1).max(300).meta({ description: "an operation, or a step's id" }), by, why }),
        response: { 200: z.object({ steps: z.array(z.string()) }) },
      },
    },
    async ({ body, caller }) => {
      const command = { ...body, by: nameOf(caller, body.by) };
      const steps = await controlPlane.release(command);
      log.warn({ event: "release", ...command, steps }, "an operator released held steps");
      return { steps: [...steps] };
    },
  );

  app.post(
    "/v1/instances/:instance/force-seal",
    {
      schema: {
        summary: "Give up what a draining instance still has; outside the zero-loss claim",
        params: z.object({ instance: z.string().max(100) }),
        body: z.strictObject({ by, why, for: forHowLong }),
        response: { 200: forcedSealView },
      },
    },
    async ({ params, body, caller }) => {
      const until = clock.now() + Math.min(parseDuration(body.for) ?? 0, MAX_EXCEPTION_MS);
      const command = { instance: params.instance, why: body.why, by: nameOf(caller, body.by), until };
      const seal = await controlPlane.forceSeal(command);
      const { pool, obligations } = seal;
      log.warn({ event: "force_seal", ...command, until: formatInstant(until), pool, obligations }, "an operator forced a seal");
      return renderForcedSeal(seal);
    },
  );

  app.get(
    "/v1/forced-seals",
    {
      schema: {
        summary: "Seals that an operator forced and that somebody must still look at",
        response: { 200: z.object({ items: z.array(forcedSealView) }) },
      },
    },
    async () => ({ items: (await controlPlane.listForcedSeals()).map(renderForcedSeal) }),
  );

  app.post(
    "/v1/freeze",
    {
      schema: {
        summary: "No new decisions; traffic, health and accepted deadlines go on",
        body: z.strictObject({ pool: poolOrAll, for: forHowLong, why, by }),
        response: { 200: z.object({ pools: z.array(z.string()), until: z.iso.datetime() }) },
      },
    },
    async ({ body, caller }) => {
      const who = nameOf(caller, body.by);
      const until = clock.now() + Math.min(parseDuration(body.for) ?? 0, MAX_FREEZE_MS);
      const pools = await controlPlane.freeze(body.pool, { until, why: body.why, by: who });
      log.info({ event: "freeze", pools, until: formatInstant(until), by: who, why: body.why }, "an operator froze pools");
      return { pools: [...pools], until: formatInstant(until) };
    },
  );

  app.post(
    "/v1/unfreeze",
    {
      schema: {
        summary: "Decide again",
        body: z.strictObject({ pool: poolOrAll, by }),
        response: { 200: unfrozenView },
      },
    },
    async ({ body, caller }) => {
      const who = nameOf(caller, body.by);
      const pools = await controlPlane.unfreeze(body.pool, who);
      log.info({ event: "unfreeze", pools, by: who }, "an operator lifted a freeze");
      const states = await Promise.all(pools.map((pool) => controlPlane.findPool(pool)));
      const stillFrozen = states.flatMap((state) => (state?.freeze ? [{ pool: state.pool, ...renderFreeze(state.freeze) }] : []));
      return { pools: [...pools], stillFrozen };
    },
  );
};
