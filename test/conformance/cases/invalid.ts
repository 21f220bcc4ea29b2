/** Workloads that are refused. */
import type { Case } from "../case.ts";
import { PODS, DEPLOYMENTS, pod, deployment } from "./objects.ts";

export const invalidCases: readonly Case[] = [
  {
    name: "pods that are not valid",
    steps: [
      { call: `POST ${PODS}`, body: pod("a1", { containers: [] }) },
      { call: `POST ${PODS}`, body: pod("a2", { containers: [{ image: "any" }] }) },
      {
        call: `POST ${PODS}`,
        body: pod("a3", {
          containers: [
            { name: "main", image: "any" },
            { name: "main", image: "any" },
          ],
        }),
      },
      { call: `POST ${PODS}`, body: pod("a4", { restartPolicy: "Sometimes" }) },
      { call: `POST ${PODS}`, body: pod("a5", { terminationGracePeriodSeconds: -1 }) },
      { call: `POST ${PODS}`, body: pod("a6", { containers: [{ name: "main", image: "any", ports: [{ containerPort: 70_000 }] }] }) },
      { call: `POST ${PODS}`, body: pod("a7", { priorityClassName: "nobody" }) },
      {
        call: `POST ${PODS}`,
        body: pod("a8"),
        pick: [
          "status.phase",
          "status.qosClass",
          "spec.restartPolicy",
          "spec.terminationGracePeriodSeconds",
          "spec.priority",
          "spec.schedulerName",
        ],
      },
    ],
  },
  {
    name: "deployments that are not valid",
    steps: [
      { call: `POST ${DEPLOYMENTS}`, body: { ...deployment("a"), spec: {} } },
      {
        call: `POST ${DEPLOYMENTS}`,
        body: {
          ...deployment("a"),
          spec: {
            selector: { matchLabels: { app: "other" } },
            template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main", image: "any" }] } },
          },
        },
      },
      {
        call: `POST ${DEPLOYMENTS}`,
        body: {
          ...deployment("a"),
          spec: {
            replicas: -1,
            selector: { matchLabels: { app: "web" } },
            template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main", image: "any" }] } },
          },
        },
      },
      {
        call: `POST ${DEPLOYMENTS}`,
        body: deployment("a"),
        pick: ["spec.replicas", "spec.strategy", "spec.progressDeadlineSeconds", "spec.revisionHistoryLimit"],
      },
    ],
  },
];
