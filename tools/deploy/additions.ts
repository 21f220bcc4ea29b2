/** What the controller gets in addition where it reads demand through connections, or where KEDA asks it: switches of the chart, components of kustomize. */
import { PORTS } from "./names.ts";
import type { Settings } from "./settings.ts";
import type { Json } from "./structural.ts";

/** Items of the lists of the controller's pod. */
export interface Addition {
  readonly args: readonly string[];
  readonly ports: readonly Json[];
  readonly volumeMounts: readonly Json[];
  readonly volumes: readonly Json[];
}

const CONNECTIONS_PATH = "/etc/relevo/connections";
const KEDA_PATH = "/etc/relevo/keda";

/** All keys of the Secret are files there, so that the file of connections can name the others: `${file:/etc/relevo/connections/KEY}`. */
export function connectionsAddition({ connectionsSecret }: Settings): Addition {
  return {
    args: [`--connections=${CONNECTIONS_PATH}/connections.yaml`],
    ports: [],
    ...secretAt("connections", connectionsSecret, CONNECTIONS_PATH),
  };
}

/** Beyond loopback addresses the scaler listens with a certificate alone, and who asks shows one of the same authority: what KEDA is told is nobody else's matter. */
export function kedaAddition({ kedaSecret }: Settings): Addition {
  return {
    args: [
      `--keda-scaler=0.0.0.0:${PORTS.keda}`,
      `--keda-tls-cert=${KEDA_PATH}/tls.crt`,
      `--keda-tls-key=${KEDA_PATH}/tls.key`,
      `--keda-client-ca=${KEDA_PATH}/ca.crt`,
    ],
    ports: [{ name: "keda", containerPort: PORTS.keda }],
    ...secretAt("keda", kedaSecret, KEDA_PATH),
  };
}

function secretAt(name: string, secretName: string, mountPath: string): Pick<Addition, "volumeMounts" | "volumes"> {
  return {
    volumeMounts: [{ name, mountPath, readOnly: true }],
    volumes: [{ name, secret: { secretName, defaultMode: 0o440 } }],
  };
}

/** A component of kustomize: it adds to lists that are there, whatever an overlay added before. */
export function component(addition: Addition, resources: readonly string[]): Json {
  const pod = "/spec/template/spec";
  const places = { args: `${pod}/containers/0`, ports: `${pod}/containers/0`, volumeMounts: `${pod}/containers/0`, volumes: pod } as const;
  const patch = Object.entries(places).flatMap(([field, place]) =>
    addition[field as keyof Addition].map((value) => ({ op: "add", path: `${place}/${field}/-`, value })),
  );
  return {
    apiVersion: "kustomize.config.k8s.io/v1alpha1",
    kind: "Component",
    resources,
    patches: [{ target: { kind: "Deployment", name: "relevo-controller" }, patch: JSON.stringify(patch, null, 2) }],
  };
}
