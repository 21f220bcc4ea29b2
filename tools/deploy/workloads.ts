/** The processes of Relevo as workloads: controller, gateway, agent, and the Services before them. */
import { HOLDS_LITTLE } from "../../src/cli/processes/node-flags.ts";
import { INSTANCES_ACCOUNT } from "../../src/kube/permissions.ts";
import { DEFAULT_AUDIENCE } from "../../src/server/kubernetes-access.ts";
import {
  accountOf,
  type Component,
  CONTROLLER_SERVICE,
  CONTROLLERS_SERVICE,
  ifWanted,
  KEDA_SERVICE,
  labels,
  openAnnotations,
  openArgs,
  PORTS,
  selector,
  SYSTEM_PRIORITY,
} from "./names.ts";
import { type Addition, connectionsAddition, kedaAddition } from "./additions.ts";
import type { Settings } from "./settings.ts";
import type { Json } from "./structural.ts";

/** In the image, nobody. */
const USER = 65_532;
/** A gateway takes no new connection any more, and what it accepted ends. */
const GATEWAY_GRACE_S = 120;
/** A node that shuts down in good order ends these last: until then somebody has to say so. */
const AGENT_PRIORITY = "system-node-critical";
/** Until those before it have heard that it goes. */
const LEAVE_S = 5;

/** As files, not as variables: what is exchanged there counts without a restart. */
const ACCESS_PATH = "/etc/relevo/access";

const fromSecret = (name: string, secret: string, key: string): Json => ({
  name,
  valueFrom: { secretKeyRef: { name: secret, key } },
});
const fromPod = (name: string, fieldPath: string): Json => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const probe = (path: string, port: string, rest: Json = {}): Json => ({ httpGet: { path, port }, ...rest });

/**
 * By which the controller knows the gateway's pod or the agent's node: good for the controller alone, and not for the API server. A day, so that who has one can go
 * on while the API server is away; the kubelet renews it long before.
 */
const TOKEN_VOLUME = {
  name: "token",
  projected: { sources: [{ serviceAccountToken: { audience: DEFAULT_AUDIENCE, expirationSeconds: 86_400, path: "token" } }] },
};
const TOKEN_MOUNT = { name: "token", mountPath: "/var/run/secrets/relevo.dev", readOnly: true };
const TOKEN_PATH = "/var/run/secrets/relevo.dev/token";
const TOKEN_FILE = { name: "RELEVO_TOKEN_FILE", value: TOKEN_PATH };

export function serviceAccounts(settings: Settings): readonly Json[] {
  return (["controller", "gateway", "agent"] as const).map((component) => ({
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: {
      ...meta(accountOf(component), settings, component),
      ...(settings.isChart ? { annotations: openAnnotations(component) } : {}),
    },
    automountServiceAccountToken: false,
  }));
}

export function controller(settings: Settings): readonly Json[] {
  const { storeSecret, tokenSecret, isChart } = settings;
  const additions = { connections: connectionsAddition(settings), kedaScaler: kedaAddition(settings) };
  const wanted = (field: keyof Addition): readonly (Json | string)[] =>
    Object.entries(additions).flatMap(([value, addition]) =>
      addition[field].length === 0 ? [] : ifWanted<Json | string>(value, isChart, addition[field]),
    );
  const container = {
    name: "controller",
    args: [
      "controller",
      "--host=0.0.0.0",
      `--port=${PORTS.api}`,
      "--auth=kubernetes",
      `--advertise=http://${CONTROLLER_SERVICE}.${settings.namespace}.svc:${PORTS.api}`,
      `--instances-account=${INSTANCES_ACCOUNT}`,
      "--priority-classes",
      `--webhook-secret-file=${ACCESS_PATH}/webhook`,
      ...wanted("args"),
      ...more("controller", settings),
    ],
    env: [
      fromSecret("RELEVO_STORE", storeSecret, "url"),
      { name: "RELEVO_STORE_PASSWORD_FILE", value: "/etc/relevo/store/password" },
      { name: "RELEVO_TOKEN_FILE", value: `${ACCESS_PATH}/token` },
      fromPod("POD_NAME", "metadata.name"),
      fromPod("POD_NAMESPACE", "metadata.namespace"),
      fromPod("POD_IP", "status.podIP"),
    ],
    ports: [{ name: "api", containerPort: PORTS.api }, ...wanted("ports")],
    startupProbe: probe("/healthz", "api", { periodSeconds: 2, failureThreshold: 60 }),
    livenessProbe: probe("/healthz", "api", { periodSeconds: 10, failureThreshold: 6, timeoutSeconds: 5 }),
    readinessProbe: probe("/readyz", "api", { periodSeconds: 5, failureThreshold: 2, timeoutSeconds: 5 }),
    resources: { requests: { cpu: "250m", memory: "512Mi" }, limits: { memory: "1536Mi" } },
    volumeMounts: [
      { name: "store", mountPath: "/etc/relevo/store", readOnly: true },
      { name: "access", mountPath: ACCESS_PATH, readOnly: true },
      ...wanted("volumeMounts"),
    ],
  };
  const pod = podSpec("controller", settings, container, {
    automountServiceAccountToken: true,
    terminationGracePeriodSeconds: 30,
    volumes: [
      { name: "store", secret: { secretName: storeSecret, defaultMode: 0o440, items: [{ key: "password", path: "password" }] } },
      { name: "access", secret: { secretName: tokenSecret, defaultMode: 0o440, optional: true } },
      ...wanted("volumes"),
    ],
  });
  const port = [{ name: "api", port: PORTS.api, targetPort: "api" }];
  return [
    deployment("controller", settings, settings.controllerReplicas, pod, { maxSurge: 1, maxUnavailable: 0 }),
    // One that may not decide yet still takes renewals, and says why: it is never taken out of the Services for it.
    service(CONTROLLER_SERVICE, "controller", settings, { publishNotReadyAddresses: true, ports: port }),
    service(CONTROLLERS_SERVICE, "controller", settings, { clusterIP: "None", publishNotReadyAddresses: true, ports: port }),
    budget("controller", settings),
  ];
}

export function kedaService(settings: Settings): Json {
  return service(KEDA_SERVICE, "controller", settings, { ports: [{ name: "keda", port: PORTS.keda, targetPort: "keda" }] });
}

export function gateway(settings: Settings): readonly Json[] {
  const container = {
    name: "gateway",
    args: [
      "gateway",
      `--controller=http://${CONTROLLERS_SERVICE}.${settings.namespace}.svc:${PORTS.api}`,
      "--host=0.0.0.0",
      `--port=${PORTS.traffic}`,
      "--admin-host=0.0.0.0",
      `--admin-port=${PORTS.admin}`,
      "--key-file=/etc/relevo/gateway/key",
      `--grace=${GATEWAY_GRACE_S}s`,
      ...more("gateway", settings),
    ],
    env: [fromPod("POD_NAME", "metadata.name"), TOKEN_FILE],
    ports: [
      { name: "traffic", containerPort: PORTS.traffic },
      { name: "admin", containerPort: PORTS.admin },
    ],
    startupProbe: probe("/healthz", "admin", { periodSeconds: 1, failureThreshold: 60 }),
    // Never by what it is told or by its instances: a gateway that is cut off serves on.
    livenessProbe: probe("/healthz", "admin", { periodSeconds: 10, failureThreshold: 6, timeoutSeconds: 5 }),
    readinessProbe: probe("/readyz", "admin", { periodSeconds: 2, failureThreshold: 2, timeoutSeconds: 2 }),
    lifecycle: { preStop: { sleep: { seconds: LEAVE_S } } },
    resources: { requests: { cpu: "500m", memory: "256Mi" }, limits: { memory: "1Gi" } },
    volumeMounts: [{ name: "key", mountPath: "/etc/relevo/gateway", readOnly: true }, TOKEN_MOUNT],
  };
  const pod = podSpec("gateway", settings, container, {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: GATEWAY_GRACE_S + LEAVE_S + 5,
    volumes: [
      { name: "key", secret: { secretName: settings.gatewaySecret, defaultMode: 0o440, items: [{ key: "key", path: "key" }] } },
      TOKEN_VOLUME,
    ],
  });
  return [
    deployment("gateway", settings, settings.gatewayReplicas, pod, { maxSurge: 1, maxUnavailable: 0 }),
    service("relevo-gateway", "gateway", settings, {
      type: settings.gatewayServiceType,
      ports: [{ name: "traffic", port: 80, targetPort: "traffic" }],
    }),
    budget("gateway", settings),
  ];
}

/** One per node, in the network of the node: a cloud's metadata answers there, and often nowhere else. */
export function agent(settings: Settings): readonly Json[] {
  const container = {
    name: "agent",
    args: [
      "agent",
      `--controller=http://${CONTROLLER_SERVICE}.${settings.namespace}.svc:${PORTS.api}`,
      `--token-file=${TOKEN_PATH}`,
      "--instances-file=/tmp/instances.json",
      ...more("agent", settings),
    ],
    env: [fromPod("NODE_NAME", "spec.nodeName"), { name: "NODE_OPTIONS", value: HOLDS_LITTLE.join(" ") }],
    volumeMounts: [TOKEN_MOUNT],
    resources: { requests: { cpu: "10m", memory: "80Mi" }, limits: { memory: "128Mi" } },
  };
  const {
    affinity: _,
    topologySpreadConstraints: __,
    ...spec
  } = podSpec("agent", settings, container, {
    automountServiceAccountToken: true,
    hostNetwork: true,
    dnsPolicy: "ClusterFirstWithHostNet",
    tolerations: [{ operator: "Exists" }],
    terminationGracePeriodSeconds: 10,
    priorityClassName: AGENT_PRIORITY,
    volumes: [TOKEN_VOLUME],
  });
  return [
    // Some clusters (GKE) take pods of this class outside kube-system only where a quota says so; it is no limit here.
    {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: meta("relevo-agent", settings, "agent"),
      spec: {
        hard: { pods: "100k" },
        scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: [AGENT_PRIORITY] }] },
      },
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: meta("relevo-agent", settings, "agent"),
      spec: {
        selector: { matchLabels: selector("agent") },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
        template: { metadata: { labels: labels("agent") }, spec },
      },
    },
  ];
}

function more(component: Component, { isChart }: Settings): readonly string[] {
  return isChart ? [openArgs(component)] : [];
}

function podSpec(component: Component, { image, pullPolicy }: Settings, container: Json, rest: Json): Json {
  return {
    serviceAccountName: accountOf(component),
    priorityClassName: SYSTEM_PRIORITY,
    enableServiceLinks: false,
    affinity: { nodeAffinity: NOT_ON_SPOT },
    topologySpreadConstraints: ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map((topologyKey) => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: { matchLabels: selector(component) },
    })),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...rest,
    containers: [
      {
        ...container,
        image,
        imagePullPolicy: pullPolicy,
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
        volumeMounts: [{ name: "tmp", mountPath: "/tmp" }, ...((container["volumeMounts"] as readonly Json[] | undefined) ?? [])],
      },
    ],
    volumes: [
      { name: "tmp", emptyDir: { medium: "Memory", sizeLimit: "64Mi" } },
      ...((rest["volumes"] as readonly Json[] | undefined) ?? []),
    ],
  };
}

/** Relevo does not run on the capacity that it evacuates: each provisioner's own label for it. A node without the label is no spot node. */
const NOT_ON_SPOT = {
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: [
      {
        matchExpressions: [
          { key: "karpenter.sh/capacity-type", operator: "NotIn", values: ["spot"] },
          { key: "eks.amazonaws.com/capacityType", operator: "NotIn", values: ["SPOT"] },
          { key: "cloud.google.com/gke-spot", operator: "NotIn", values: ["true"] },
          { key: "kubernetes.azure.com/scalesetpriority", operator: "NotIn", values: ["spot"] },
        ],
      },
    ],
  },
};

function deployment(component: Component, settings: Settings, replicas: number | string, spec: Json, rollingUpdate: Json): Json {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: meta(`relevo-${component}`, settings, component),
    spec: {
      replicas,
      strategy: { type: "RollingUpdate", rollingUpdate },
      selector: { matchLabels: selector(component) },
      template: { metadata: { labels: labels(component) }, spec },
    },
  };
}

function service(name: string, component: Component, settings: Settings, spec: Json): Json {
  return { apiVersion: "v1", kind: "Service", metadata: meta(name, settings, component), spec: { selector: selector(component), ...spec } };
}

function budget(component: Component, settings: Settings): Json {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: meta(`relevo-${component}`, settings, component),
    // A pod that is not ready protects nobody: it may go.
    spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow", selector: { matchLabels: selector(component) } },
  };
}

function meta(name: string, { namespace }: Settings, component: Component): Json {
  return { name, namespace, labels: labels(component) };
}
