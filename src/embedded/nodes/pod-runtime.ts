/**
 * What runs containers: real processes in the embedded cluster, a model in the simulator. The kubelet above it is the same for both.
 *
 * A machine that died answers nothing: its calls never settle with a result that the kubelet could act upon, and no exit is reported for what ran on it.
 */
import type { ActionSpec } from "../controllers/views.ts";

export interface Machine {
  /** The node's name. */
  readonly name: string;
  /** Unique for each boot: a node that comes back is another machine. */
  readonly machineId: string;
}

export interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface PodSandbox {
  readonly podIP: string;
  readonly hostIP: string;
  /** The pod's folder; its volumes are folders in it by their names. */
  readonly dir: string;
  /** Where pods share an address each gets ports of its own: container port → real port. Empty when each pod has its own address. */
  readonly portMap: ReadonlyMap<number, number>;
}

/** Volume name → file name → content; an empty map is an empty folder. */
export type VolumeFiles = ReadonlyMap<string, ReadonlyMap<string, string | Uint8Array>>;

export interface ContainerStart {
  readonly id: string;
  readonly pod: PodIdentity;
  readonly container: string;
  readonly restartCount: number;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string | undefined;
  /** For models: what the pod's author asked for. */
  readonly image: string;
  /** Resident memory of all its processes, in bytes. */
  readonly memoryLimitBytes?: number;
}

export interface ContainerExit {
  readonly exitCode: number;
  /** The signal's number when one ended it. */
  readonly signal: number | undefined;
  /** Where the exit alone does not tell. */
  readonly reason?: "OOMKilled";
}

export interface ActionResult {
  readonly ok: boolean;
  readonly message: string;
}

export interface PodRuntime {
  /** Settles when the machine can run pods. `died` is called when it is gone, whoever took it. */
  boot(machine: Machine, died: () => void): Promise<void>;
  /** The machine's own address; undefined while it does not run. */
  hostIP(machine: Machine): string | undefined;
  /** Ends everything on the machine in one stroke, without a chance to react. Doing it twice is harmless. */
  kill(machine: Machine): Promise<void>;
  /** False when the machine does not answer in time: its node then stops renewing its lease. */
  isAlive(machine: Machine, timeoutMs: number): Promise<boolean>;
  /** Makes the pod's folder, volumes and address; `ports` are those its containers declare. */
  createSandbox(machine: Machine, pod: PodIdentity, volumes: VolumeFiles, ports: readonly number[]): Promise<PodSandbox>;
  removeSandbox(machine: Machine, pod: PodIdentity): Promise<void>;
  /** Settles when the container runs; rejects when it cannot start. `exited` is called exactly once after a start that succeeded. */
  start(machine: Machine, start: ContainerStart, exited: (exit: ContainerExit) => void): Promise<void>;
  signal(machine: Machine, containerId: string, signal: "SIGTERM" | "SIGKILL"): void;
  /** A probe or a hook; named ports are resolved by the caller. */
  act(machine: Machine, containerId: string, action: ResolvedAction, timeoutMs: number): Promise<ActionResult>;
}

/** An action whose ports are numbers and whose host is known. */
export type ResolvedAction =
  | {
      readonly kind: "http";
      readonly host: string;
      readonly port: number;
      readonly path: string;
      readonly headers: readonly (readonly [string, string])[];
    }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "exec"; readonly command: readonly string[] };

/** Undefined when the action is of no kind that is known, or names a port that no container declares. */
export function resolveAction(
  action: ActionSpec,
  sandbox: PodSandbox,
  ports: readonly { readonly name?: string; readonly containerPort: number }[],
): ResolvedAction | undefined {
  const portOf = (port: number | string): number | undefined => {
    const declared =
      typeof port === "number"
        ? port
        : (ports.find((candidate) => candidate.name === port)?.containerPort ?? (/^\d+$/.test(port) ? Number(port) : undefined));
    return declared === undefined ? undefined : (sandbox.portMap.get(declared) ?? declared);
  };
  if (action.httpGet !== undefined) {
    const port = portOf(action.httpGet.port);
    const headers = (action.httpGet.httpHeaders ?? []).map(({ name, value }) => [name, value] as const);
    return port === undefined
      ? undefined
      : { kind: "http", host: action.httpGet.host ?? sandbox.podIP, port, path: action.httpGet.path ?? "/", headers };
  }
  if (action.tcpSocket !== undefined) {
    const port = portOf(action.tcpSocket.port);
    return port === undefined ? undefined : { kind: "tcp", host: action.tcpSocket.host ?? sandbox.podIP, port };
  }
  return action.exec === undefined ? undefined : { kind: "exec", command: action.exec.command ?? [] };
}
