/** The commands that run processes: what they are given. They are composed in main.ts and `processes/`, and handed to the program. */
import type { CliContext, GlobalOptions } from "./context.ts";
import type { ExitCode } from "./exit.ts";

export interface ProcessCommands {
  readonly up: (context: CliContext, options: UpCommandOptions) => Promise<ExitCode>;
  readonly demo: (context: CliContext, name: string | undefined, options: DemoCommandOptions) => Promise<ExitCode>;
  readonly controller: (context: CliContext, options: ControllerCommandOptions) => Promise<ExitCode>;
  readonly gateway: (context: CliContext, options: GatewayCommandOptions) => Promise<ExitCode>;
  readonly agent: (context: CliContext, options: AgentCommandOptions) => Promise<ExitCode>;
  readonly cluster: (context: CliContext, options: ClusterCommandOptions) => Promise<ExitCode>;
  readonly queue: (context: CliContext, options: QueueCommandOptions) => Promise<ExitCode>;
  readonly store: (context: CliContext, what: StoreCommand, options: StoreCommandOptions) => Promise<ExitCode>;
}

export type StoreCommand = "migrate" | "export" | "import";

export interface StoreCommandOptions extends GlobalOptions {
  /** A file, or the URL of a PostgreSQL database without a password. */
  readonly store?: string;
  readonly storePasswordFile?: string;
  /** Of an export; absent or `-`: standard output, or input. */
  readonly file?: string;
  readonly dryRun?: boolean;
}

/** Durations are in ms; a port 0 lets the system choose. */
export interface UpCommandOptions extends GlobalOptions {
  readonly connections?: string;
  readonly dir: string;
  readonly nodes: number;
  readonly onDemand: number;
  readonly zones: readonly string[];
  readonly bootDelay: number;
  readonly disruptionInterval: number;
  readonly spotLead: number;
  readonly port: number;
  readonly controllerPort: number;
  readonly clusterPort: number;
  readonly adminPort: number;
  readonly logLevel: string;
}

export interface DemoCommandOptions extends GlobalOptions {
  readonly list?: boolean;
  readonly once?: boolean;
  /** Each demo has its own when it is absent. */
  readonly deadline?: number;
  /** Of the storm: how many go. */
  readonly nodes?: number;
}

export interface ControllerCommandOptions extends GlobalOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** A file, or the URL of a PostgreSQL database without a password. */
  readonly store?: string;
  readonly storePasswordFile?: string;
  readonly leaseKeyFile?: string;
  readonly host: string;
  readonly port: number;
  readonly webhookSecretFile?: string;
  readonly tokenFile?: string;
  readonly auth?: "kubernetes";
  readonly authAudience?: string;
  readonly sqsQueue?: readonly string[];
  readonly sqsEndpoint?: string;
  readonly awsRegion?: string;
  readonly sqsUnclaimed?: "delete" | "leave";
  readonly lifecycleHooks?: boolean;
  readonly advertise?: string;
  readonly replicasNamespace?: string;
  readonly replica?: string;
  readonly replicaUrl?: string;
  /** Both or neither: where the learning of what the site absorbs begins. */
  readonly absorbPerSecond?: number;
  readonly absorbAtOnce?: number;
  /** 0: no limit. */
  readonly kubeQps?: number;
  readonly kubeBurst?: number;
  readonly instancesAccount?: string;
  readonly connections?: string;
  readonly kedaScaler?: string;
  readonly kedaTlsCert?: string;
  readonly kedaTlsKey?: string;
  readonly kedaClientCa?: string;
  readonly kedaTokenFile?: string;
  readonly priorityClasses?: boolean;
  readonly spotLead: number;
  readonly logLevel: string;
}

export interface GatewayCommandOptions extends GlobalOptions {
  readonly controller: readonly string[];
  readonly predecessor?: string;
  readonly replica?: string;
  readonly keyFile: string;
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly grace: number;
  readonly logLevel: string;
}

export interface AgentCommandOptions extends GlobalOptions {
  readonly node?: string;
  readonly cloud: "auto" | "aws" | "gcp" | "azure" | "none";
  readonly metadataUrl: string;
  readonly controller: readonly string[];
  readonly controllerCa?: string;
  readonly tokenFile?: string;
  readonly kubeApi?: string;
  readonly kubeTokenFile?: string;
  readonly kubeCa?: string;
  readonly instancesFile?: string;
  readonly azureApprove?: boolean;
  readonly azureAgreed?: readonly string[];
  readonly logLevel: string;
}

export interface ClusterCommandOptions extends GlobalOptions {
  readonly dir: string;
  readonly nodes: number;
  readonly onDemand: number;
  readonly zones: readonly string[];
  readonly bootDelay: number;
  readonly disruptionInterval: number;
  readonly apiPort: number;
  readonly adminPort: number;
  readonly logLevel: string;
}

export interface QueueCommandOptions extends GlobalOptions {
  readonly host: string;
  readonly port: number;
  readonly store: string;
  readonly tokenFile: string;
  readonly logLevel: string;
}
