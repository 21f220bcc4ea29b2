/** The pod runtime of the embedded cluster: containers are processes of this machine. */
import { connect, createServer } from "node:net";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { getCompileCacheDir } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { RelevoError } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { AddressSpace, type NodeAddresses } from "./addresses.ts";
import { CLUSTER_MARK, endLeftovers } from "./leftovers.ts";
import { MachineProcess } from "./machine-process.ts";
import type {
  ActionResult,
  ContainerExit,
  ContainerStart,
  Machine,
  PodIdentity,
  PodRuntime,
  PodSandbox,
  ResolvedAction,
  VolumeFiles,
} from "./pod-runtime.ts";

export interface ProcessRuntimeOptions {
  /** Pods' folders and logs live beneath it. */
  readonly dir: string;
  readonly clock: Clock;
  readonly random: Random;
  /** `own-address`: 127.x.y.z for each pod (Linux); `own-port`: all on 127.0.0.1 with free ports. */
  readonly addressing: "own-address" | "own-port";
  readonly maxLogBytes?: number;
}

interface RunningContainer {
  readonly env: Record<string, string>;
  readonly cwd: string;
}

interface MachineState {
  readonly process: MachineProcess;
  readonly addresses: NodeAddresses;
  readonly sandboxes: Map<string, PodSandbox>;
  readonly containers: Map<string, RunningContainer>;
}

const DEFAULT_MAX_LOG_BYTES = 10 * 1024 * 1024;
/** What of our own environment reaches containers: they must not depend on whoever started the cluster. */
const INHERITED = ["PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "NODE_COMPILE_CACHE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];

export class ProcessRuntime implements PodRuntime {
  readonly #options: ProcessRuntimeOptions;
  readonly #space: AddressSpace;
  readonly #machines = new Map<string, MachineState>();
  #isClosed = false;

  constructor(options: ProcessRuntimeOptions) {
    this.#options = options;
    this.#space = new AddressSpace(options.random);
  }

  async boot(machine: Machine, died: () => void): Promise<void> {
    if (this.#isClosed)
      throw new RelevoError("runtime_closed", "The cluster is closing; no machine is started any more.", { class: "cancelled" });
    const state: MachineState = {
      process: new MachineProcess(machine.name, this.#baseEnv(), died),
      addresses: this.#space.node(),
      sandboxes: new Map(),
      containers: new Map(),
    };
    this.#machines.set(machine.machineId, state);
    await state.process.ready;
  }

  hostIP(machine: Machine): string | undefined {
    const state = this.#machines.get(machine.machineId);
    if (state === undefined) return undefined;
    return this.#options.addressing === "own-port" ? "127.0.0.1" : state.addresses.hostIP;
  }

  async kill(machine: Machine): Promise<void> {
    const state = this.#machines.get(machine.machineId);
    if (state === undefined) return;
    state.process.kill();
    await state.process.gone;
    this.#machines.delete(machine.machineId);
  }

  async isAlive(machine: Machine, timeoutMs: number): Promise<boolean> {
    const state = this.#machines.get(machine.machineId);
    if (state === undefined || state.process.isGone) return false;
    const late = Promise.withResolvers<boolean>();
    const timer = this.#options.clock.after(timeoutMs, () => late.resolve(false));
    const answered = state.process.ping().then(
      () => true,
      () => false,
    );
    return await Promise.race([answered, late.promise]).finally(() => timer.cancel());
  }

  /** The process group of a machine; for tests and for whoever takes it. */
  groupOf(machine: Machine): number | undefined {
    return this.#machines.get(machine.machineId)?.process.pid;
  }

  async createSandbox(machine: Machine, pod: PodIdentity, volumes: VolumeFiles, ports: readonly number[]): Promise<PodSandbox> {
    const state = this.#machine(machine);
    const known = state.sandboxes.get(pod.uid);
    if (known !== undefined) return known;
    const dir = join(this.#options.dir, "pods", pod.uid);
    await mkdir(dir, { recursive: true });
    for (const [name, files] of volumes) await writeVolume(join(dir, name), files);
    const isShared = this.#options.addressing === "own-port";
    const sandbox: PodSandbox = {
      podIP: isShared ? "127.0.0.1" : state.addresses.allocate(),
      hostIP: isShared ? "127.0.0.1" : state.addresses.hostIP,
      dir,
      portMap: isShared ? await freePorts(ports) : new Map(),
    };
    state.sandboxes.set(pod.uid, sandbox);
    return sandbox;
  }

  async removeSandbox(machine: Machine, pod: PodIdentity): Promise<void> {
    const state = this.#machines.get(machine.machineId);
    const sandbox = state?.sandboxes.get(pod.uid);
    if (state === undefined || sandbox === undefined) return;
    state.sandboxes.delete(pod.uid);
    state.addresses.release(sandbox.podIP);
    await rm(sandbox.dir, { recursive: true, force: true });
    await rm(this.#logFolder(pod), { recursive: true, force: true });
  }

  async start(machine: Machine, start: ContainerStart, exited: (exit: ContainerExit) => void): Promise<void> {
    const state = this.#machine(machine);
    const sandbox = state.sandboxes.get(start.pod.uid);
    if (sandbox === undefined) throw new RelevoError("sandbox_missing", `Pod ${start.pod.name} has no sandbox on ${machine.name}.`);
    const [word = "", ...args] = start.command;
    const env = { ...this.#baseEnv(), ...start.env };
    const cwd = start.workingDir ?? sandbox.dir;
    state.containers.set(start.id, { env, cwd });
    // The log of the run before stays for `logs --previous`; older ones go.
    if (start.restartCount >= 2)
      for (const end of ["", ".1"]) await rm(`${this.logPath(start.pod, start.container, start.restartCount - 2)}${end}`, { force: true });
    try {
      await state.process.start(
        {
          id: start.id,
          file: programOf(word),
          args,
          cwd,
          env,
          logPath: this.logPath(start.pod, start.container, start.restartCount),
          maxLogBytes: this.#options.maxLogBytes ?? DEFAULT_MAX_LOG_BYTES,
          ...(start.memoryLimitBytes === undefined ? {} : { memoryLimitBytes: start.memoryLimitBytes }),
        },
        (code, signal, isOutOfMemory) => {
          state.containers.delete(start.id);
          exited(isOutOfMemory ? OUT_OF_MEMORY : exitOf(code, signal));
        },
      );
    } catch (error) {
      state.containers.delete(start.id);
      throw error;
    }
  }

  signal(machine: Machine, containerId: string, signal: "SIGTERM" | "SIGKILL"): void {
    this.#machines.get(machine.machineId)?.process.signal(containerId, signal);
  }

  async act(machine: Machine, containerId: string, action: ResolvedAction, timeoutMs: number): Promise<ActionResult> {
    switch (action.kind) {
      case "http":
        return await httpGet(action, timeoutMs, this.#options.clock);
      case "tcp":
        return await tcpConnect(action, timeoutMs, this.#options.clock);
      case "exec": {
        const state = this.#machine(machine);
        const container = state.containers.get(containerId);
        const [word = "", ...args] = action.command;
        if (container === undefined || word === "") return { ok: false, message: "no such container, or no command" };
        const { code, output } = await state.process.run({ file: programOf(word), args, ...container, timeoutMs });
        return { ok: code === 0, message: output.trim() };
      }
      default:
        return action satisfies never;
    }
  }

  /** Where a container of a pod writes; the rotated part stands beside it as `.1`. */
  logPath(pod: PodIdentity, container: string, restartCount: number): string {
    return join(this.#logFolder(pod), container, `${restartCount}.log`);
  }

  #logFolder(pod: PodIdentity): string {
    return join(this.#options.dir, "logs", `${pod.namespace}_${pod.name}_${pod.uid}`);
  }

  /** Ends everything that was started here, also what left its group. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const states = [...this.#machines.values()];
    for (const { process: machine } of states) machine.kill();
    await Promise.all(states.map(({ process: machine }) => machine.gone));
    this.#machines.clear();
    endLeftovers(this.#options.dir);
  }

  #baseEnv(): Record<string, string> {
    const env: Record<string, string> = { [CLUSTER_MARK]: this.#options.dir };
    for (const name of INHERITED) {
      const value = process.env[name];
      if (value !== undefined) env[name] = value;
    }
    // A cache that was switched on in the program is in no variable; its folder's last part is the version, which each process adds by itself.
    const cache = getCompileCacheDir();
    if (cache !== undefined) env["NODE_COMPILE_CACHE"] ??= dirname(cache);
    return env;
  }

  #machine(machine: Machine): MachineState {
    const state = this.#machines.get(machine.machineId);
    if (state === undefined || state.process.isGone) throw new RelevoError("machine_gone", `The machine of node ${machine.name} is gone.`);
    return state;
  }
}

/** `node` is the Node that runs this cluster, so that a pod needs nothing installed. */
function programOf(word: string): string {
  return word === "node" ? process.execPath : word;
}

/** As container runtimes tell it. */
const OUT_OF_MEMORY: ContainerExit = { exitCode: 137, signal: undefined, reason: "OOMKilled" };

function exitOf(code: number | null, signal: string | null): ContainerExit {
  const number = signal === null ? undefined : (constants.signals[signal as NodeJS.Signals] ?? 0);
  return { exitCode: code ?? 128 + (number ?? 0), signal: number };
}

async function writeVolume(folder: string, files: ReadonlyMap<string, string | Uint8Array>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [path, content] of files) {
    const target = join(folder, path);
    if (!target.startsWith(`${folder}/`))
      throw new RelevoError("volume_path_outside", "A volume's file lies outside of its folder.", { found: path });
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
  }
}

async function freePorts(wanted: readonly number[]): Promise<ReadonlyMap<number, number>> {
  const map = new Map<number, number>();
  for (const port of wanted) map.set(port, await freePort());
  return map;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function httpGet(action: ResolvedAction & { readonly kind: "http" }, timeoutMs: number, clock: Clock): Promise<ActionResult> {
  return new Promise((resolve) => {
    const { host, port, path } = action;
    const sent = request({
      host,
      port,
      path: path.startsWith("/") ? path : `/${path}`,
      agent: false,
      headers: { "user-agent": "kube-probe/embedded", connection: "close", ...Object.fromEntries(action.headers) },
    });
    const timer = clock.after(timeoutMs, () => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    sent.once("response", (response) => {
      response.resume();
      response.once("error", () => undefined);
      const status = response.statusCode ?? 0;
      timer.cancel();
      sent.destroy();
      resolve({ ok: status >= 200 && status < 400, message: `HTTP probe answered with statuscode: ${status}` });
    });
    sent.once("error", (error) => {
      timer.cancel();
      resolve({ ok: false, message: `Get "http://${host}:${port}${path}": ${error.message}` });
    });
    sent.end();
  });
}

function tcpConnect(action: ResolvedAction & { readonly kind: "tcp" }, timeoutMs: number, clock: Clock): Promise<ActionResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: action.host, port: action.port });
    const finish = (result: ActionResult): void => {
      timer.cancel();
      socket.destroy();
      resolve(result);
    };
    const timer = clock.after(timeoutMs, () => finish({ ok: false, message: `no connection within ${timeoutMs} ms` }));
    socket.once("connect", () => finish({ ok: true, message: "" }));
    socket.once("error", (error) => finish({ ok: false, message: error.message }));
  });
}
