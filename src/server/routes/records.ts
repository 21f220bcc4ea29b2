/** What there is, read-only. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { poolKey } from "../../model/pool.ts";
import type { RouteContext } from "../app.ts";
import {
  renderCapacity,
  renderController,
  renderCordon,
  renderEvidence,
  renderExplanation,
  renderGateway,
  renderInstance,
  renderJournalEntry,
  renderNode,
  renderNotice,
  renderPlan,
  renderPool,
  renderSender,
  renderStep,
  renderWorkload,
} from "../render.ts";
import {
  capacityView,
  controllerView,
  cordonView,
  evidenceView,
  explanationView,
  gatewayView,
  instanceView,
  journalView,
  nodeView,
  noticeView,
  planView,
  poolView,
  protectionView,
  senderView,
  stepView,
  workloadView,
} from "../views.ts";

const limit = z.coerce.number().int().min(1).max(1000).default(100);
const recordQuery = z.object({ pool: z.string().max(100).optional(), limit });
const poolPath = z.object({ namespace: z.string().max(63), name: z.string().max(63) });

export const recordRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, log }) => {
  const list = <T extends z.ZodType>(item: T, summary: string) => ({ summary, response: { 200: z.object({ items: z.array(item) }) } });

  app.get("/v1/pools", { schema: list(poolView, "All pools") }, async () => ({ items: (await controlPlane.listPools()).map(renderPool) }));

  app.get(
    "/v1/pools/:namespace/:name",
    { schema: { summary: "One pool", params: poolPath, response: { 200: poolView } } },
    async ({ params }) => {
      const pool = poolKey(params.namespace, params.name);
      const state = await controlPlane.findPool(pool);
      if (state === undefined) throw poolNotFound(pool);
      return renderPool(state);
    },
  );

  app.get(
    "/v1/pools/:namespace/:name/plan",
    { schema: { summary: "What the planner wants now, and why; changes nothing", params: poolPath, response: { 200: planView } } },
    async ({ params }) => renderPlan(await controlPlane.plan(poolKey(params.namespace, params.name))),
  );

  app.get(
    "/v1/pools/:namespace/:name/protection",
    { schema: { ...list(protectionView, "How each live pod is protected, by its owner chain; changes nothing"), params: poolPath } },
    async ({ params }) => ({
      items: (await controlPlane.protection(poolKey(params.namespace, params.name))).map((pod) => ({
        ...pod,
        owners: [...pod.owners],
        marks: { ...pod.marks },
      })),
    }),
  );

  app.get(
    "/v1/capacity",
    { schema: { summary: "How well capacity is, and what could take over", response: { 200: capacityView } } },
    async () => renderCapacity(await controlPlane.capacity()),
  );

  app.get(
    "/v1/explain",
    {
      schema: {
        summary: "Why a pool or an instance does what it does, or nothing",
        querystring: z.object({ subject: z.string().min(1).max(200) }),
        response: { 200: explanationView },
      },
    },
    async ({ query }) => {
      const explanation = await controlPlane.explain(query.subject);
      return renderExplanation(explanation, await controlPlane.witnessesOf(explanation.evidence));
    },
  );

  app.get(
    "/v1/instances",
    { schema: { ...list(instanceView, "Instances, deleted ones too, newest first"), querystring: recordQuery } },
    async ({ query }) => ({ items: (await controlPlane.listInstances(query)).map(renderInstance) }),
  );

  let isEvidenceRead = false;
  app.get(
    "/v1/evidence",
    { schema: { ...list(evidenceView, "Facts against instances, newest first"), querystring: recordQuery } },
    async ({ query, ip }) => {
      const evidence = await controlPlane.listEvidence(query);
      const witnesses = await controlPlane.witnessesOf(evidence);
      const items = evidence.map((fact) => renderEvidence(fact, witnesses.get(fact.id)));
      if (!isEvidenceRead)
        log.info(
          { event: "evidence_first_read", pool: query.pool ?? null, count: items.length, from: ip },
          "evidence is read for the first time",
        );
      isEvidenceRead = true;
      return { items };
    },
  );

  app.get("/v1/steps", { schema: { ...list(stepView, "The journal, newest first"), querystring: recordQuery } }, async ({ query }) => ({
    items: (await controlPlane.listSteps(query)).map(renderStep),
  }));

  app.get(
    "/v1/workloads",
    { schema: { ...list(workloadView, "Who writes for each place of a pool with a writer lease"), querystring: recordQuery } },
    async ({ query }) => ({ items: (await controlPlane.listWorkloads(query)).map(renderWorkload) }),
  );

  app.get(
    "/v1/notices",
    { schema: { ...list(noticeView, "Notices as received, newest first"), querystring: z.object({ limit }) } },
    async ({ query }) => ({ items: (await controlPlane.listNotices(query.limit)).map(renderNotice) }),
  );

  app.get(
    "/v1/events",
    { schema: { ...list(journalView, "Transitions that this replica told since it started, newest first"), querystring: recordQuery } },
    async ({ query }) => ({ items: (await controlPlane.listEvents(query)).map(renderJournalEntry) }),
  );
  app.get("/v1/sources", { schema: list(senderView, "Who sends notices to this replica, and when it was last heard") }, async () => ({
    items: controlPlane.listSenders().map(renderSender),
  }));
  app.get("/v1/cordons", { schema: list(cordonView, "Nodes that Relevo cordoned") }, async () => ({
    items: (await controlPlane.listCordons()).map(renderCordon),
  }));
  app.get("/v1/nodes", { schema: list(nodeView, "Nodes as Relevo sees them") }, async () => ({
    items: (await controlPlane.listNodes()).map(renderNode),
  }));
  app.get("/v1/controllers", { schema: list(controllerView, "The replicas of the controller, and which pools each has") }, async () => ({
    items: (await controlPlane.listControllers()).map(renderController),
  }));
  app.get("/v1/gateways", { schema: list(gatewayView, "Registered gateway replicas") }, async () => ({
    items: (await controlPlane.listGateways()).map(renderGateway),
  }));
};

function poolNotFound(pool: string): RelevoError {
  return new RelevoError("pool_not_found", `There is no pool ${pool}.`, { found: pool, todo: "see relevo get pools" });
}
