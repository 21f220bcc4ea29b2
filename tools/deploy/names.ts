/** Names and labels of what is installed. */
import type { Identity } from "../../src/kube/permissions.ts";
import type { Json } from "./structural.ts";

export type Component = "controller" | "gateway" | "agent";

export function labels(component?: Component): Json {
  return {
    "app.kubernetes.io/name": "relevo",
    "app.kubernetes.io/part-of": "relevo",
    ...(component === undefined ? {} : { "app.kubernetes.io/component": component }),
  };
}

/** What selects the pods of one part. */
export function selector(component: Component): Json {
  return { "app.kubernetes.io/name": "relevo", "app.kubernetes.io/component": component };
}

export function accountOf(component: Component | Exclude<Identity, "instances">): string {
  return `relevo-${component}`;
}

/** What `withOpenPlaces` makes of the chart's text: here a user's own values go. */
export const openArgs = (component: Component): string => `@@args ${component}@@`;
export const openPorts = (value: "networkPolicies" | "connections"): string => `@@ports ${value}@@`;
export const openAnnotations = (component: Component): string => `@@annotations ${component}@@`;

/** Of a list: in a chart the user says whether these items are there; in the plain manifests a component adds them. */
export function ifWanted<Item>(value: string, isChart: boolean, items: readonly Item[]): readonly (Item | string)[] {
  return isChart ? [`@@if ${value}@@`, ...items, "@@end@@"] : [];
}

/** As Helm takes it: lists and mappings in the places that were left open. */
export function withOpenPlaces(text: string): string {
  return text
    .replaceAll(/^( *)- "@@args (\w+)@@"$/gm, "$1{{- range .Values.$2.extraArgs }}\n$1- {{ . | quote }}\n$1{{- end }}")
    .replaceAll(
      /^( *)- ports: "@@ports (\w+)@@"$/gm,
      "$1- ports:\n$1    {{- range .Values.$2.egressPorts }}\n$1    - protocol: TCP\n$1      port: {{ int . }}\n$1    {{- end }}",
    )
    .replaceAll(/^( *)- "@@if (\w+)@@"$/gm, "$1{{- if .Values.$2.enabled }}")
    .replaceAll(/^( *)- "@@end@@"$/gm, "$1{{- end }}")
    .replaceAll(
      /^( *)annotations: "@@annotations (\w+)@@"$/gm,
      "$1{{- with .Values.$2.annotations }}\n$1annotations:\n$1  {{- toYaml . | nindent 4 }}\n$1{{- end }}",
    );
}

export const PORTS = { api: 7070, traffic: 8080, admin: 9090, keda: 6000 } as const;

/** For instances, the command line and webhooks: any replica. */
export const CONTROLLER_SERVICE = "relevo-controller";
/** For gateways: each replica by its own address. */
export const CONTROLLERS_SERVICE = "relevo-controllers";

/** For KEDA: each replica of the controller answers for all pools. */
export const KEDA_SERVICE = "relevo-keda";

export const SYSTEM_PRIORITY = "relevo-system";
