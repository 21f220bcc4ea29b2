/** What differs between one installation and another. For the chart each is an expression of Helm instead of a value. */
export interface Settings {
  readonly namespace: string;
  readonly image: string;
  readonly pullPolicy: string;
  readonly controllerReplicas: number | string;
  readonly gatewayReplicas: number | string;
  readonly gatewayServiceType: string;
  /** Of Secrets that the user makes; their keys are in docs/kubernetes.md. */
  readonly storeSecret: string;
  readonly tokenSecret: string;
  readonly gatewaySecret: string;
  readonly connectionsSecret: string;
  readonly kedaSecret: string;
  readonly version: string;
  /** In a chart, lines stand where a user may add arguments, and annotations of a ServiceAccount, as a cloud's own identity asks for; nothing elsewhere. */
  readonly isChart: boolean;
}

/** In a chart: a number that must not be quoted. */
export const number = (expression: string): string => `{{ int ${expression} }}`;

export function plainSettings(version: string): Settings {
  return {
    namespace: "relevo-system",
    image: `relevo:${version}`,
    pullPolicy: "IfNotPresent",
    controllerReplicas: 3,
    gatewayReplicas: 2,
    gatewayServiceType: "ClusterIP",
    storeSecret: "relevo-store",
    tokenSecret: "relevo-token",
    gatewaySecret: "relevo-gateway",
    connectionsSecret: "relevo-connections",
    kedaSecret: "relevo-keda",
    version,
    isChart: false,
  };
}

export function chartSettings(version: string): Settings {
  return {
    namespace: "{{ .Release.Namespace }}",
    image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}",
    pullPolicy: "{{ .Values.image.pullPolicy }}",
    controllerReplicas: number(".Values.controller.replicas"),
    gatewayReplicas: number(".Values.gateway.replicas"),
    gatewayServiceType: "{{ .Values.gateway.serviceType }}",
    storeSecret: "{{ .Values.secrets.store }}",
    tokenSecret: "{{ .Values.secrets.token }}",
    gatewaySecret: "{{ .Values.secrets.gateway }}",
    connectionsSecret: "{{ .Values.secrets.connections }}",
    kedaSecret: "{{ .Values.secrets.keda }}",
    version,
    isChart: true,
  };
}
