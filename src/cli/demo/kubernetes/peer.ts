/**
 * The real control plane under the demo. What starts and builds it lies in `tools/kubernetes` of a clone: it is a program of other people, compiled here, and
 * no part of a published package.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Clock, Timer } from "../../../kernel/clock.ts";
import { RelevoError } from "../../../kernel/errors.ts";

const TOOLS = new URL("../../../../tools/kubernetes/", import.meta.url);

/** The part of `tools/kubernetes/cluster.ts` that is used here. */
export interface RealKubernetes {
  readonly kubeconfig: string;
  readonly dir: string;
  readonly url: string;
  readonly pieces: {
    pause(name: string): void;
    resume(name: string): void;
    restart(name: string): Promise<void>;
  };
  stop(): Promise<void>;
}

interface ClusterModule {
  startKubernetes(options: {
    readonly parts: readonly string[];
    readonly flags: Readonly<Record<string, readonly string[]>>;
  }): Promise<RealKubernetes>;
}

export interface PeerOptions {
  /** Without: all, Karpenter too. */
  readonly parts?: readonly string[] | undefined;
  /** Appended to its command line. */
  readonly apiserverFlags: readonly string[];
  /** Told what the build says, line by line. */
  readonly progress: (line: string) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const ALL_PARTS: readonly string[] = ["controllers", "scheduler", "kwok", "karpenter"];
/** The compiler says nothing while it works. */
const STILL_BUILDING_MS = 30_000;

/** Builds what is missing first, about 11 minutes, once. Errors: `demo_needs_a_clone`, `kubernetes_build_failed`. */
export async function startPeer(options: PeerOptions): Promise<RealKubernetes> {
  if (!existsSync(new URL("cluster.ts", TOOLS)))
    throw new RelevoError("demo_needs_a_clone", "This demo starts a real Kubernetes, whose build is not in the published package.", {
      found: `no ${fileURLToPath(TOOLS)}`,
      todo: "run it in a clone of the repository: npm run demo:kubernetes",
    });
  await build(options);
  const { startKubernetes } = (await import(new URL("cluster.ts", TOOLS).href)) as ClusterModule;
  return startKubernetes({ parts: options.parts ?? ALL_PARTS, flags: { apiserver: options.apiserverFlags } });
}

/** Does nothing where everything is up to date. */
async function build({ progress, clock, signal }: PeerOptions): Promise<void> {
  const startedAt = clock.monotonic();
  const tick = (): Timer =>
    clock.after(STILL_BUILDING_MS, () => {
      progress(`building Kubernetes and Karpenter, about 11 minutes, once: ${Math.round((clock.monotonic() - startedAt) / 1000)} s`);
      ticking = tick();
    });
  let ticking = tick();
  const child = spawn("bash", [fileURLToPath(new URL("build.sh", TOOLS))], { stdio: ["ignore", "pipe", "pipe"], signal });
  let last = "";
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      last = line;
      progress(line);
    });
  const found = await new Promise<string | null>((resolve) => {
    child.once("exit", (code) => resolve(code === 0 ? null : `exit ${code}: ${last}`));
    child.once("error", (error) => resolve(error.message));
  });
  ticking.cancel();
  if (found !== null)
    throw new RelevoError("kubernetes_build_failed", "The real Kubernetes could not be built.", {
      found,
      todo: "npm run kubernetes:build shows all of it",
    });
}
