/** How each program of the control plane is called. Data alone: nothing is started here. */
import { join } from "node:path";

/** What may be switched on besides etcd and the API server. */
export const KUBERNETES_PARTS = ["controllers", "scheduler", "kwok", "karpenter"] as const;
export type KubernetesPart = (typeof KUBERNETES_PARTS)[number];
export type PieceName = "etcd" | "apiserver" | KubernetesPart;

/** Users of the token file. `admin` may do everything, the others nothing until RBAC grants it; the token of each is `NAME-token`. */
export const KUBERNETES_USERS = ["admin", "relevo", "nobody"] as const;
export type KubernetesUser = (typeof KUBERNETES_USERS)[number];

export interface Ports {
  readonly api: number;
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly karpenterMetrics: number;
  readonly karpenterHealth: number;
}

export interface Site {
  /** Where the programs lie. */
  readonly bin: string;
  /** State, logs, certificates and the kubeconfig. */
  readonly dir: string;
  readonly ports: Ports;
  readonly podCidr: string;
  readonly parts: readonly KubernetesPart[];
  /** Appended to the command line of each. */
  readonly flags: Partial<Record<PieceName, readonly string[]>>;
}

export interface PieceCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export const kubeconfigPath = (dir: string): string => join(dir, "kubeconfig");
const etcdUrl = ({ etcd }: Ports): string => `http://127.0.0.1:${etcd}`;

export function commandOf(name: PieceName, site: Site): PieceCommand {
  const command = COMMANDS[name](site);
  return { ...command, args: [...command.args, ...(site.flags[name] ?? [])] };
}

const COMMANDS: Readonly<Record<PieceName, (site: Site) => PieceCommand>> = {
  etcd: ({ bin, dir, ports }) => {
    const peer = `http://127.0.0.1:${ports.etcdPeer}`;
    const args = ["etcd", "--data-dir", join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn"];
    const client = ["--listen-client-urls", etcdUrl(ports), "--advertise-client-urls", etcdUrl(ports)];
    const peers = ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", `default=${peer}`];
    return { file: join(bin, "kube"), args: [...args, ...client, ...peers] };
  },

  apiserver: ({ bin, dir, ports, parts }) => ({
    file: join(bin, "kube"),
    args: [
      "apiserver",
      ...["--etcd-servers", etcdUrl(ports), "--endpoint-reconciler-type", "none"],
      ...["--bind-address", "127.0.0.1", "--secure-port", String(ports.api), "--cert-dir", join(dir, "certs")],
      ...["--service-cluster-ip-range", "10.96.0.0/16", "--allow-privileged"],
      ...["--token-auth-file", join(dir, "tokens.csv"), "--authorization-mode", "Node,RBAC", "--anonymous-auth=true"],
      ...["--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", join(dir, "accounts.key")],
      ...["--service-account-signing-key-file", join(dir, "accounts.key")],
      // Nobody would make the service accounts, and no pod could be created.
      ...(parts.includes("controllers") ? [] : ["--disable-admission-plugins=ServiceAccount"]),
    ],
  }),

  controllers: ({ bin, dir }) => ({
    file: join(bin, "kube"),
    args: [
      "controller-manager",
      ...["--kubeconfig", kubeconfigPath(dir), "--leader-elect=false", "--secure-port", "0", "--use-service-account-credentials"],
      ...["--service-account-private-key-file", join(dir, "accounts.key"), "--root-ca-file", join(dir, "certs", "apiserver.crt")],
    ],
  }),

  scheduler: ({ bin, dir }) => ({
    file: join(bin, "kube"),
    args: ["scheduler", "--kubeconfig", kubeconfigPath(dir), "--leader-elect=false", "--secure-port", "0"],
  }),

  /** The kubelet of every node with the annotation `kwok.x-k8s.io/node: fake`; others are left alone. */
  kwok: ({ bin, dir, podCidr }) => ({
    file: join(bin, "kwok"),
    args: [
      ...["--kubeconfig", kubeconfigPath(dir), "--cidr", podCidr, "--node-lease-duration-seconds", "40"],
      ...["--manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake"],
      ...["--config", join(import.meta.dirname, "kwok-stages.yaml")],
    ],
  }),

  karpenter: ({ bin, dir, ports }) => ({
    file: join(bin, "karpenter"),
    args: [],
    env: {
      KUBECONFIG: kubeconfigPath(dir),
      DISABLE_LEADER_ELECTION: "true",
      SYSTEM_NAMESPACE: "kube-system",
      METRICS_PORT: String(ports.karpenterMetrics),
      HEALTH_PROBE_PORT: String(ports.karpenterHealth),
    },
  }),
};

/** A kubeconfig with a context for each user, named like it; `admin` is the current one. */
export function kubeconfigText({ dir, ports }: Site): string {
  return JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "admin",
      clusters: [
        {
          name: "kubernetes",
          cluster: { server: `https://127.0.0.1:${ports.api}`, "certificate-authority": join(dir, "certs", "apiserver.crt") },
        },
      ],
      users: KUBERNETES_USERS.map((name) => ({ name, user: { token: `${name}-token` } })),
      contexts: KUBERNETES_USERS.map((name) => ({ name, context: { cluster: "kubernetes", user: name } })),
    },
    undefined,
    2,
  );
}

export function tokensText(): string {
  return KUBERNETES_USERS.map((name) => `${name}-token,${name},u-${name}${name === "admin" ? ',"system:masters"' : ""}\n`).join("");
}
