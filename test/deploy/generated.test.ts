import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { FREEZE_CONFIG } from "../../src/control/freeze-config.ts";
import { KINDS } from "../../src/embedded/kinds.ts";
import { PERMISSIONS, questionsOf, CAPABILITIES } from "../../src/kube/permissions.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { poolSchema } from "../../src/model/pool.ts";
import { runCli } from "../../src/cli/testing/run-cli.ts";
import { poolDefinition } from "../../tools/deploy/crd.ts";
import { deployFiles } from "../../tools/deploy/files.ts";
import { BAD_POOLS, GOOD_POOLS } from "./bad-pools.ts";

const root = join(import.meta.dirname, "..", "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const files = deployFiles(version);

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

/** Of the plain manifests, not of the chart. */
const manifests = [...files]
  .filter(([path]) => !path.startsWith("helm/") && !path.endsWith("kustomization.yaml"))
  .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as Manifest));

interface Addition {
  readonly path: string;
  readonly value: unknown;
}

/** What a component of kustomize adds to the controller. */
function additionsOf(component: string): readonly Addition[] {
  const document = parseAllDocuments(files.get(`${component}/kustomization.yaml`) ?? "")[0]?.toJS() as
    | { readonly patches: readonly { readonly patch: string }[] }
    | undefined;
  return (document?.patches ?? []).flatMap(({ patch }) => JSON.parse(patch) as readonly Addition[]);
}

test("deploy/ is as it is generated", () => {
  for (const [path, text] of files) expect(readFileSync(join(root, "deploy", path), "utf8"), `npm run deploy:generate: ${path}`).toBe(text);
});

/** Outside of our own namespace a name says whose it is. */
const OURS = /^(relevo-|pools\.relevo\.dev$)/;

test("what `kubectl delete -k` takes along is Relevo's own: its one namespace, and what bears its name elsewhere", () => {
  const foreign = manifests
    .filter(({ metadata: { name, namespace } }) => namespace !== "relevo-system" && !OURS.test(name))
    .map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
  expect(foreign).toEqual([]);
  expect(manifests.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.name)).toEqual(["relevo-system"]);
});

describe("the definition of Pools", () => {
  test.each(GOOD_POOLS)("the schema takes $what", ({ pool }) => {
    expect(poolSchema.safeParse(pool).success).toBe(true);
  });
  test.each(BAD_POOLS)("the schema refuses $what", ({ pool }) => {
    expect(poolSchema.safeParse(pool).success).toBe(false);
  });

  test("is structural: every node has a type or takes anything, and nothing that an API server refuses", () => {
    const wrong: string[] = [];
    const look = (schema: Record<string, unknown>, path: string): void => {
      if (schema["type"] === undefined && schema["x-kubernetes-preserve-unknown-fields"] !== true) wrong.push(`${path} has no type`);
      if (schema["additionalProperties"] !== undefined) look(schema["additionalProperties"] as Record<string, unknown>, `${path}.*`);
      for (const key of ["default", "$schema", "const", "anyOf", "oneOf", "$ref"]) if (key in schema) wrong.push(`${path}.${key}`);
      for (const [name, each] of Object.entries((schema["properties"] ?? {}) as Record<string, Record<string, unknown>>))
        look(each, `${path}.${name}`);
      if (schema["items"] !== undefined) look(schema["items"] as Record<string, unknown>, `${path}[]`);
    };
    look(schemaOfServer(), "");
    expect(wrong).toEqual([]);
  });

  test("has the columns that the embedded cluster shows", () => {
    const columns = versionOf()["additionalPrinterColumns"] as readonly { readonly name: string; readonly priority?: number }[];
    const embedded = KINDS.find(({ kind, group }) => kind === POOLS.kind && group === POOLS.group)?.columns ?? [];
    expect(embedded.map(({ name, wide = false }) => [name, wide])).toEqual([
      ["Name", false],
      ...columns.map(({ name, priority = 0 }) => [name, priority > 0]),
    ]);
  });
});

describe("roles", () => {
  const rules = manifests.flatMap((manifest) =>
    ["Role", "ClusterRole"].includes(manifest.kind) && !/^relevo-(pools-|viewer|operator|admin)/.test(manifest.metadata.name)
      ? (manifest["rules"] as readonly {
          readonly apiGroups: string[];
          readonly resources: string[];
          readonly verbs: string[];
          readonly resourceNames?: string[];
        }[])
      : [],
  );

  test("grant what the table says and nothing else", () => {
    expect(rules.length).toBe(Object.values(PERMISSIONS).flat().length);
  });

  test("are explained in docs/kubernetes.md, each capability in a row", () => {
    const text = readFileSync(join(root, "docs", "kubernetes.md"), "utf8");
    expect(CAPABILITIES.filter((capability) => !text.includes(`\n| \`${capability}\` |`))).toEqual([]);
  });

  test("no part deletes nodes, evicts, reads Secrets, writes roles, runs in pods, or has a wildcard but for the names of metrics; pods are deleted by the accounts of Pools' namespaces alone, for members (I8)", () => {
    const granted = rules.flatMap(({ apiGroups, resources, verbs }) =>
      resources.flatMap((each) => verbs.map((verb) => `${verb} ${apiGroups[0]}/${each}`)),
    );
    const dangerous = granted.filter((each) =>
      /(?<!^list external\.metrics\.k8s\.io\/)\*|secrets|pods\/|roles|rolebindings|delete \/(nodes|pods)|create \/pods|delete karpenter|webhookconfigurations|(?<!^get apiextensions\.k8s\.io\/)customresourcedefinitions|serviceaccounts\/token/.test(
        each,
      ),
    );
    expect(dangerous).toEqual(["delete /pods"]);
    const mayDeletePods = manifests.filter(
      ({ kind, rules: of }) => /Role$/.test(kind) && JSON.stringify(of).includes('["pods"],"verbs":["delete"]'),
    );
    expect(mayDeletePods.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(["Role relevo-instances-members"]);
  });

  test("of CustomResourceDefinitions the controller reads that of Pools alone", () => {
    expect(rules.filter(({ resources }) => resources.includes("customresourcedefinitions"))).toEqual([
      {
        apiGroups: ["apiextensions.k8s.io"],
        resources: ["customresourcedefinitions"],
        verbs: ["get"],
        resourceNames: ["pools.relevo.dev"],
      },
    ]);
  });

  test("of ConfigMaps the controller sees those alone that freeze", () => {
    expect(PERMISSIONS.freeze.map(({ names }) => names)).toEqual([[FREEZE_CONFIG]]);
  });

  test("an account is impersonated only by name, and only in the namespaces of Pools", () => {
    expect(rules.filter(({ verbs }) => verbs.includes("impersonate"))).toEqual([
      { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["impersonate"], resourceNames: ["relevo-instances"] },
    ]);
    expect(
      questionsOf(CAPABILITIES, { ownNamespace: "relevo-system", poolNamespaces: ["a", "b"] })
        .filter(({ verb }) => verb === "impersonate")
        .map(({ namespace, name }) => [namespace, name]),
    ).toEqual([
      ["a", "relevo-instances"],
      ["b", "relevo-instances"],
    ]);
  });

  test("the account of a namespace may scale targets there and remove the owner that it is told to, and the controller sees all owners (K3, I20)", () => {
    const ofScaling = (kind: string, name: string) =>
      manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)?.["rules"];
    expect(ofScaling("Role", "relevo-instances-scaling")).toEqual([
      { apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["patch"] },
      { apiGroups: ["apps"], resources: ["statefulsets/scale"], verbs: ["patch"] },
      { apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs: ["get", "list", "delete"] },
      { apiGroups: ["keda.sh"], resources: ["scaledobjects"], verbs: ["get", "list", "delete"] },
    ]);
    expect(ofScaling("ClusterRole", "relevo-controller-scaling")).toEqual([
      { apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs: ["list", "watch"] },
      { apiGroups: ["keda.sh"], resources: ["scaledobjects"], verbs: ["list", "watch"] },
    ]);
  });

  test("each binding is of a role that is there", () => {
    const roles = new Set(manifests.filter(({ kind }) => kind.endsWith("Role")).map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    for (const binding of manifests.filter(({ kind }) => kind.endsWith("RoleBinding"))) {
      const { kind, name } = binding["roleRef"] as { kind: string; name: string };
      expect(roles).toContain(`${kind} ${name}`);
    }
  });
});

describe("workloads", () => {
  const pods = manifests
    .filter(({ kind }) => kind === "Deployment" || kind === "DaemonSet")
    .map(({ metadata, spec }) => [metadata.name, (spec as { template: { spec: PodSpec } }).template.spec] as const);
  interface PodSpec {
    readonly automountServiceAccountToken: boolean;
    readonly securityContext: unknown;
    readonly containers: readonly { readonly securityContext: unknown; readonly args: readonly string[]; readonly resources: unknown }[];
  }

  test("run as nobody, on a file system that cannot be written, with no capability", () => {
    for (const [name, pod] of pods) {
      expect(pod.securityContext, name).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      for (const container of pod.containers)
        expect(container.securityContext, name).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
    }
  });

  test("only those that call the Kubernetes API get a token for it", () => {
    expect(pods.map(([name, { automountServiceAccountToken }]) => [name, automountServiceAccountToken])).toEqual([
      ["relevo-controller", true],
      ["relevo-gateway", false],
      ["relevo-agent", true],
    ]);
  });

  test("are started with arguments that the program takes", async () => {
    const seen: string[] = [];
    const note = (name: string) => async () => {
      seen.push(name);
      return 0 as const;
    };
    for (const [, { containers }] of pods) {
      for (const { args } of containers) {
        const processes = { controller: note("controller"), gateway: note("gateway"), agent: note("agent") };
        const { code, err } = await runCli(args, { processes });
        expect([args[0], code, err]).toEqual([args[0], 0, ""]);
      }
    }
    expect(seen).toEqual(["controller", "gateway", "agent"]);
  });

  test("what a component adds is there in the controller to be added to, and the program takes it", async () => {
    const pod = pods.find(([name]) => name === "relevo-controller")?.[1];
    for (const component of ["connections", "keda"]) {
      const additions = additionsOf(component);
      for (const { path } of additions) {
        const lists = path.replace("/spec/template/spec/", "").replace("/-", "").split("/");
        expect([path, lists.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], pod)]).toEqual([path, expect.any(Array)]);
      }
      expect(additions.length).toBeGreaterThan(2);
      const own = additions.map(({ value }) => value).filter((value): value is string => typeof value === "string");
      const mounted = additions.flatMap(({ value }) => (value as { readonly mountPath?: string }).mountPath ?? []);
      expect(own.filter((argument) => argument.includes("/")).every((argument) => argument.includes(`${mounted[0] ?? "none"}/`))).toBe(
        true,
      );
      const started = await runCli([...(pod?.containers[0]?.args ?? []), ...own], { processes: { controller: async () => 0 as const } });
      expect([component, started.code, started.err]).toEqual([component, 0, ""]);
    }
  });

  test("KEDA reaches the port that the scaler listens on, by the Service of its name, and nobody but KEDA does", () => {
    const added = additionsOf("keda").map(({ value }) => value);
    expect(added).toContain("--keda-scaler=0.0.0.0:6000");
    expect(added).toContainEqual({ name: "keda", containerPort: 6000 });
    const [service, policy] = ["Service", "NetworkPolicy"].map((kind) =>
      manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === "relevo-keda"),
    );
    expect(service?.["spec"]).toMatchObject({ ports: [{ name: "keda", port: 6000, targetPort: "keda" }] });
    expect(policy?.["spec"]).toMatchObject({
      policyTypes: ["Ingress"],
      ingress: [
        {
          from: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: "keda-operator" } } }],
          ports: [{ protocol: "TCP", port: 6000 }],
        },
      ],
    });
  });

  test("the ports by which demand is read are those that docs/signals.md names", () => {
    const policy = manifests.find(({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "relevo-connections");
    expect(policy?.["spec"]).toMatchObject({
      policyTypes: ["Egress"],
      egress: [{ ports: [6379, 7091, 9090, 9092, 9093].map((port) => ({ protocol: "TCP", port })) }],
    });
    expect(readFileSync(join(root, "docs", "signals.md"), "utf8")).toContain(
      "6379 of Redis, 7091 of the queue, 9090 of Prometheus, 9092 and 9093\n  of Kafka",
    );
  });

  test("no secret is in an argument", () => {
    for (const [, pod] of pods) for (const { args } of pod.containers) expect(args.join(" ")).not.toMatch(/TOKEN|SECRET|PASSWORD/);
  });
});

describe("the chart", () => {
  const templates = [...files].filter(([path]) => path.startsWith("helm/templates/"));
  const values = parseAllDocuments(files.get("helm/values.yaml") ?? "")[0]?.toJS() as Record<string, unknown>;

  test("asks for no value that values.yaml does not have", () => {
    const asked = templates.flatMap(([, text]) => [...text.matchAll(/\.Values((?:\.\w+)+)/g)].map(([, path]) => path?.slice(1) ?? ""));
    const has = (path: string): boolean =>
      path.split(".").reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], values) !== undefined;
    expect(asked.length).toBeGreaterThan(10);
    expect([...new Set(asked)].filter((path) => !has(path))).toEqual([]);
  });

  test("has no value that nothing asks for", () => {
    const text = templates.map(([, each]) => each).join("");
    const paths = (at: unknown, path: string): readonly string[] =>
      typeof at === "object" && at !== null && !Array.isArray(at) && Object.keys(at).length > 0 && !path.endsWith(".annotations")
        ? Object.entries(at).flatMap(([key, each]) => paths(each, `${path}.${key}`))
        : [path];
    const leaves = paths(values, ".Values").filter((path) => !new RegExp(`\\${path.replaceAll(".", "\\.").slice(1)}\\b`).test(text));
    expect(leaves).toEqual([]);
  });

  test("has what the components add, each behind its switch, off at first", () => {
    expect([values["connections"], values["kedaScaler"]]).toMatchObject([{ enabled: false }, { enabled: false }]);
    const text = files.get("helm/templates/controller.yaml") ?? "";
    const behind = (value: string): string =>
      [...text.matchAll(new RegExp(`\\{\\{- if \\.Values\\.${value}\\.enabled \\}\\}\\n([\\s\\S]*?)\\{\\{- end \\}\\}`, "g"))]
        .map(([, part]) => part)
        .join("");
    for (const [component, value] of [
      ["connections", "connections"],
      ["keda", "kedaScaler"],
    ] as const)
      for (const { value: added } of additionsOf(component))
        expect(behind(value)).toContain(typeof added === "string" ? `- ${added}\n` : `- name: ${(added as { name: string }).name}\n`);
  });

  test("closes what it opens", () => {
    for (const [path, text] of templates) {
      const opened = [...text.matchAll(/\{\{-? (if|range|with) /g)].length;
      expect([path, [...text.matchAll(/\{\{-? end/g)].length]).toEqual([path, opened]);
    }
  });

  test("makes what the plain manifests make, but for the namespace", () => {
    const kindsOf = (texts: readonly string[]) =>
      texts.flatMap((text) => [...text.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind)).toSorted();
    const plain = manifests.map(({ kind }) => kind).filter((kind) => kind !== "Namespace" && kind !== "CustomResourceDefinition");
    expect(kindsOf(templates.map(([, text]) => text))).toEqual(plain.toSorted());
  });

  test("has the same definition of Pools", () => {
    expect(files.get("helm/crds/pools.yaml")).toBe(files.get("crds/pools.yaml"));
  });
});

function versionOf(): Record<string, unknown> {
  const { versions } = poolDefinition()["spec"] as { versions: readonly Record<string, unknown>[] };
  return versions[0] ?? {};
}

function schemaOfServer(): Record<string, unknown> {
  return (versionOf()["schema"] as { openAPIV3Schema: Record<string, unknown> }).openAPIV3Schema;
}

test("the one token and the webhook's secret are files, so that what is exchanged counts without a restart", () => {
  const text = files.get("control-plane/controller.yaml") ?? "";
  expect(text).toContain("--webhook-secret-file=/etc/relevo/access/webhook");
  expect(text).toMatch(/name: RELEVO_TOKEN_FILE\n\s+value: "?\/etc\/relevo\/access\/token/);
  expect(text).not.toMatch(/name: (RELEVO_TOKEN|RELEVO_WEBHOOK_SECRET)\n/);
});
