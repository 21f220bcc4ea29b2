/** Ways to write: types of patches, server-side apply, whole replacements, names and namespaces. */
import type { Case } from "../case.ts";
import { MERGE, JSON_PATCH, STRATEGIC, APPLY, MAPS, DEPLOYMENTS, LEASES, map, deployment } from "./objects.ts";

export const writeCases: readonly Case[] = [
  {
    name: "a namespace that goes",
    steps: [
      { call: `POST ${MAPS}`, body: map("a", { finalizers: ["example.com/hold"] }) },
      { call: "DELETE /api/v1/namespaces/$ns" },
      { call: `POST ${MAPS}`, body: map("b") },
      { call: `PATCH ${MAPS}/a`, type: MERGE, body: { data: { a: "2" } } },
      { call: "GET /api/v1/namespaces/$ns", pick: ["status.phase", "spec.finalizers"] },
    ],
  },
  {
    name: "ways to patch",
    steps: [
      { call: `POST ${DEPLOYMENTS}`, body: deployment("a") },
      {
        call: `PATCH ${DEPLOYMENTS}/a`,
        type: STRATEGIC,
        body: { spec: { template: { spec: { containers: [{ name: "main", env: [{ name: "B", value: "2" }] }] } } } },
        pick: ["spec.template.spec.containers.0.env"],
      },
      {
        call: `PATCH ${DEPLOYMENTS}/a`,
        type: STRATEGIC,
        body: { spec: { template: { spec: { containers: [{ name: "main", env: [{ name: "A", $patch: "delete" }] }] } } } },
        pick: ["spec.template.spec.containers.0.env"],
      },
      {
        call: `PATCH ${DEPLOYMENTS}/a`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/spec/replicas", value: 2 },
          { op: "replace", path: "/spec/replicas", value: 4 },
        ],
        pick: ["spec.replicas"],
      },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: JSON_PATCH, body: [{ op: "test", path: "/spec/replicas", value: 9 }] },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: JSON_PATCH, body: [{ op: "remove", path: "/spec/nothing" }] },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: JSON_PATCH, body: { op: "remove" } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { spec: { replicas: "many" } } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { spec: { selector: { matchLabels: { app: "other" } } } } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { metadata: { name: "b" } } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: "application/json", body: {} },
      { call: `PATCH ${DEPLOYMENTS}/a?fieldValidation=Strict`, type: MERGE, body: { spec: { nonsense: 1 } } },
      { call: `PATCH ${DEPLOYMENTS}/a?dryRun=All`, type: MERGE, body: { spec: { replicas: 8 } }, pick: ["spec.replicas"] },
      { call: `GET ${DEPLOYMENTS}/a`, pick: ["spec.replicas"] },
    ],
  },
  {
    name: "server-side apply",
    steps: [
      { call: `PATCH ${MAPS}/a?fieldManager=one`, type: APPLY, body: map("a"), pick: ["data"] },
      { call: `PATCH ${MAPS}/a?fieldManager=one`, type: APPLY, body: map("a") },
      { call: `PATCH ${MAPS}/a?fieldManager=two`, type: APPLY, body: { ...map("a"), data: { a: "2" } } },
      { call: `PATCH ${MAPS}/a?fieldManager=two&force=true`, type: APPLY, body: { ...map("a"), data: { a: "2", b: "3" } }, pick: ["data"] },
      { call: `PATCH ${MAPS}/a?fieldManager=two`, type: APPLY, body: { ...map("a"), data: { a: "2" } }, pick: ["data"] },
      { call: `PATCH ${MAPS}/a`, type: APPLY, body: map("a") },
      { call: `PATCH ${MAPS}/other?fieldManager=one`, type: APPLY, body: map("a") },
    ],
  },
  {
    name: "replacing whole",
    steps: [
      { call: `POST ${MAPS}`, body: map("a"), keep: "a" },
      { call: `PUT ${MAPS}/a`, body: { ...map("a", { resourceVersion: "$a.rv" }), data: { b: "2" } }, pick: ["data"] },
      { call: `PUT ${MAPS}/a`, body: { ...map("a", { resourceVersion: "$a.rv" }), data: { b: "3" } } },
      { call: `PUT ${MAPS}/a`, body: { ...map("a"), data: { b: "3" } }, pick: ["data"] },
      { call: `PUT ${MAPS}/a`, body: { ...map("a"), data: { b: "3" } } },
      { call: `PUT ${MAPS}/a`, body: map("a", { uid: "00000000-0000-0000-0000-000000000000" }) },
      { call: `PUT ${MAPS}/nobody`, body: map("nobody", { resourceVersion: "$a.rv" }) },
      { call: `PUT ${MAPS}/a`, body: map("a", { namespace: "default" }) },
    ],
  },
  {
    name: "names that the server makes, and namespaces that are not there",
    steps: [
      { call: `POST ${MAPS}`, body: { metadata: { generateName: "a-" } } },
      { call: "POST /api/v1/namespaces/$ns-none/configmaps", body: map("a") },
      { call: "GET /api/v1/namespaces/$ns-none/configmaps" },
      { call: "GET /api/v1/namespaces/$ns-none/configmaps/a" },
      { call: `POST ${MAPS}`, body: map("a", { namespace: "default" }) },
      { call: "GET /api/v1/namespaces/$ns" },
      { call: "POST /api/v1/namespaces", body: { metadata: { name: "$ns" } } },
      { call: `POST ${MAPS}`, body: { ...map("big"), data: { a: "x".repeat(1_100_000) } } },
      { call: `POST ${MAPS}`, body: map("a", { labels: { "not a key": "b" } }) },
      { call: `POST ${MAPS}`, body: map("a", { labels: { a: "not a value!" } }) },
      { call: `POST ${MAPS}`, body: map("a", { resourceVersion: "5" }) },
      { call: `POST ${MAPS}`, body: map("a", { finalizers: ["no-slash"] }) },
      { call: `POST ${MAPS}`, body: map("owned", { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "" }] }) },
    ],
  },
  {
    name: "times of Leases have six digits",
    steps: [
      { call: `POST ${LEASES}`, body: { metadata: { name: "a" }, spec: { renewTime: "2030-01-01T00:00:00.000Z" } } },
      {
        call: `POST ${LEASES}`,
        body: { metadata: { name: "a" }, spec: { renewTime: "2030-01-01T00:00:00.000000Z" } },
        pick: ["spec.renewTime"],
      },
      { call: `PATCH ${LEASES}/a`, type: MERGE, body: { spec: { renewTime: "2030-01-01T00:00:01Z" } } },
      { call: `PATCH ${LEASES}/a`, type: MERGE, body: { spec: { leaseDurationSeconds: 0 } } },
    ],
  },
];
