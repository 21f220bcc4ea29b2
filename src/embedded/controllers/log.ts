/** Where the embedded cluster's parts say what they do; structured, so that the host decides on the format. */
export type ClusterLog = (level: "debug" | "info" | "warn" | "error", message: string, fields?: Readonly<Record<string, unknown>>) => void;

export const silentLog: ClusterLog = () => undefined;
