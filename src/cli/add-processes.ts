/** The commands that run processes: their options and their help. */
import { type Command, Option } from "commander";
import type { CliContext } from "./context.ts";
import type { ExitCode } from "./exit.ts";
import { collect, count, duration, durationOption, port, whole, zonesOption } from "./option-values.ts";
import { optionsOf } from "./options-of.ts";
import type { ProcessCommands } from "./process-commands.ts";

type Ended = (code: ExitCode) => void;

export function addProcesses(program: Command, context: CliContext, processes: ProcessCommands, ended: Ended): void {
  const level = () => new Option("--log-level <level>").choices(["trace", "debug", "info", "warn", "error", "silent"]).default("info");
  program
    .command("up")
    .description("the embedded cluster, the controller and a gateway on this machine, until Ctrl-C")
    .option("--dir <folder>", "store, cluster, keys and logs", ".relevo")
    .option("--nodes <n>", "of the embedded cluster", count, 6)
    .option("--on-demand <n>", "how many machines on demand may come beside those of spot", whole, 12)
    .addOption(zonesOption())
    .addOption(durationOption("--boot-delay <duration>", "how long a machine takes to start", 1_000))
    .addOption(durationOption("--disruption-interval <duration>", "how often the provisioner looks for nodes to disrupt", 10_000))
    .addOption(durationOption("--spot-lead <duration>", "how long a spot warning leads", 120_000))
    .option("--connections <file>", "from which Pools read their demand (docs/scaling.md)")
    .option("--port <port>", "of the gateway; 0 lets the system choose", port, 8080)
    .option("--controller-port <port>", "of the controller's API", port, 7070)
    .option("--cluster-port <port>", "of the Kubernetes API", port, 7080)
    .option("--admin-port <port>", "of the embedded cluster's admin interface", port, 7090)
    .addOption(level())
    .action(async (_options, command: Command) => ended(await processes.up(context, optionsOf(command))));

  program
    .command("demo")
    .description("shows the main job: nodes go in four ways, the work stays; and the same without Relevo")
    .argument("[name]", "which demo; without it the one that npm start shows")
    .option("--list", "names them")
    .option("--once", "exits after the result")
    .addOption(
      new Option(
        "--deadline <duration>",
        "between a spot warning and the loss of the node (main-job: 20s, storm: 60s, trino: 40s)",
      ).argParser(duration),
    )
    .option("--nodes <n>", "of the storm: how many nodes go (default: 20); the fleet is as large as that needs", count)
    .action(async (name: string | undefined, _options, command: Command) => ended(await processes.demo(context, name, optionsOf(command))));

  program
    .command("controller")
    .description("the HTTP API, the webhooks and the reconcile loop; with SQLite the only process that opens the store")
    .option("--kubeconfig <file>", "the cluster (default: KUBECONFIG, or the cluster that it runs in)")
    .option("--context <name>", "of the kubeconfig")
    .option("--store <file or URL>", "a SQLite file, or postgresql://user@host/database (default: RELEVO_STORE, or .relevo/store.db)")
    .option("--store-password-file <file>", "of PostgreSQL (default: RELEVO_STORE_PASSWORD_FILE, PGPASSWORD, PGPASSFILE)")
    .option("--lease-key-file <file>", "signs the tokens of writer leases; the same for all replicas (default: the store keeps one)")
    .option("--host <address>", "another than loopback demands tokens", "127.0.0.1")
    .option(
      "--token-file <file>",
      "who may call: a list of { name, role, tokenHash } (relevo token create); RELEVO_TOKEN may do everything",
    )
    .addOption(
      new Option("--auth <how>", "asks the API server who calls and what that one may do (docs/security.md)").choices(["kubernetes"]),
    )
    .option("--auth-audience <name>", "for whom tokens of callers must be made, with --auth kubernetes (default: relevo.dev)")
    .option("--port <port>", "0 lets the system choose", port, 7070)
    .option("--webhook-secret-file <file>", "with which notices are signed; read again when it changes")
    .option("--absorb-per-second <n>", "how many evacuations the site is known to absorb a second; more is learned", count)
    .option("--absorb-at-once <n>", "and how many at once", count)
    .option("--kube-qps <n>", "calls to the API server a second (default: 50); 0: no limit", whole)
    .option("--kube-burst <n>", "and how many at once after a rest (default: 100)", count)
    .option("--advertise <url>", "how instances reach this API, to renew writer leases (default: where it listens)")
    .option(
      "--replicas-namespace <name>",
      "there may be several replicas, on one PostgreSQL: each holds a Lease in this namespace (default: POD_NAMESPACE)",
    )
    .option("--replica <name>", "of this one (default: POD_NAME, or a new name at each start)")
    .option("--replica-url <url>", "how other replicas and gateways reach this one (default: POD_IP, or where it listens)")
    .option(
      "--instances-account <name>",
      "the ServiceAccount that makes the objects of Pools which name none (default: the controller itself)",
    )
    .option("--connections <file>", "from which Pools read their demand; read again when it changes (docs/scaling.md)")
    .option("--keda-scaler <address>", "serves KEDA's external scaler contract here, such as 127.0.0.1:6000 (docs/keda.md)")
    .option("--keda-tls-cert <file>", "of the scaler for KEDA: without it, it listens on loopback addresses alone")
    .option("--keda-tls-key <file>", "the key of that certificate")
    .option("--keda-client-ca <file>", "whoever asks must show a certificate of this authority")
    .option("--keda-token-file <file>", "a token a line: a trigger's metadata must hold one of them as `token`")
    .option("--priority-classes", "the cluster has the PriorityClasses of deploy/: pods get that of their pool")
    .option("--sqs-queue <url>", "takes notices from this queue; may be repeated; credentials as the AWS SDK finds them", collect)
    .option("--sqs-endpoint <url>", "where SQS is, in the place of the queue's host")
    .option("--aws-region <name>", "of queues and groups (default: of the queue's URL, else as the AWS SDK finds it)")
    .addOption(
      new Option("--sqs-unclaimed <what>", "what becomes of messages about machines that no cluster claimed for five minutes")
        .choices(["delete", "leave"])
        .default("delete"),
    )
    .option("--lifecycle-hooks", "answers lifecycle hooks of terminating machines: waits while instances are on them, goes on when none is")
    .addOption(durationOption("--spot-lead <duration>", "how long a spot warning leads", 120_000))
    .addOption(level())
    .action(async (_options, command: Command) => ended(await processes.controller(context, optionsOf(command))));

  program
    .command("gateway")
    .description("the data plane; holds a stream to the controller")
    .requiredOption("--controller <url>", "the controller's API; may be repeated, and a name means each of its addresses", collect)
    .requiredOption("--key-file <file>", "signs the tokens of sessions; the same for all replicas")
    .option("--replica <name>", "what its replica id begins with, to which its token may be bound (default: POD_NAME)")
    .option("--predecessor <replica>", "the replica that ran in this place and has ended: no seal waits for it")
    .option("--host <address>", "where it listens", "127.0.0.1")
    .option("--port <port>", "0 lets the system choose", port, 8080)
    .option("--admin-host <address>", "of /metrics, /healthz and /readyz", "127.0.0.1")
    .option("--admin-port <port>", "of these; 0 lets the system choose", port, 0)
    .addOption(durationOption("--grace <duration>", "for what is in flight when it is asked to end", 30_000))
    .addOption(level())
    .action(async (_options, command: Command) => ended(await processes.gateway(context, optionsOf(command))));

  addAgent(program, context, processes, ended);

  program
    .command("cluster")
    .description("the embedded cluster: a Kubernetes API whose pods are processes of this machine")
    .option("--dir <folder>", "custom resources, volumes and logs", ".relevo/cluster")
    .option("--nodes <n>", "how many to begin with", count, 6)
    .option("--on-demand <n>", "how many machines on demand may come beside those of spot", whole, 0)
    .addOption(zonesOption())
    .addOption(durationOption("--boot-delay <duration>", "how long a machine takes to start", 1_000))
    .addOption(durationOption("--disruption-interval <duration>", "how often the provisioner looks for nodes to disrupt", 10_000))
    .option("--api-port <port>", "of the Kubernetes API; 0 lets the system choose", port, 7080)
    .option("--admin-port <port>", "0 lets the system choose", port, 7090)
    .addOption(level())
    .action(async (_options, command: Command) => ended(await processes.cluster(context, optionsOf(command))));

  program
    .command("queue")
    .description("the built-in queue: jobs over HTTP, for pools of workers (docs/signals.md)")
    .requiredOption("--token-file <file>", "who may call: one token a line; read again when it changes")
    .option("--store <file>", "a SQLite file of its own", ".relevo/queue.db")
    .option("--host <address>", "where it listens", "127.0.0.1")
    .option("--port <port>", "0 lets the system choose", port, 7091)
    .addOption(level())
    .action(async (_options, command: Command) => ended(await processes.queue(context, optionsOf(command))));
}

function addAgent(program: Command, context: CliContext, processes: ProcessCommands, ended: Ended): void {
  program
    .command("agent")
    .description("on each node: tells what the cloud's metadata says of its machine")
    .option("--node <name>", "the node that it is on (default: NODE_NAME)")
    .requiredOption("--controller <url>", "a controller's API; may be repeated: one is enough that hears", collect)
    .option("--controller-ca <file>", "the certificate authority of the controllers (default: those of the system)")
    .option(
      "--token-file <file>",
      "holds what the controllers demand, read at each call (default: RELEVO_TOKEN_FILE, else RELEVO_TOKEN holds it itself)",
    )
    .addOption(
      new Option("--cloud <name>", "whose metadata it is; auto asks all three")
        .choices(["auto", "aws", "gcp", "azure", "none"])
        .default("auto"),
    )
    .option("--metadata-url <url>", "where metadata answers", "http://169.254.169.254")
    .option("--kube-api <url>", "where the pods of the node are listed (default: the API of the cluster that it runs in, if any)")
    .option("--kube-token-file <file>", "of that API (default: the pod's service account)")
    .option("--kube-ca <file>", "of that API (default: the pod's service account)")
    .option("--instances-file <file>", "remembers the instances of the node over a restart")
    .option("--azure-approve", "lets an event of Azure start at once when nothing of ours is on its machine")
    .option("--azure-agreed <machine>", "another machine that may be started along; may be repeated", collect)
    .addOption(new Option("--log-level <level>", "how much it tells").choices(["debug", "info", "warn", "error"]).default("info"))
    .action(async (_options, command: Command) => ended(await processes.agent(context, optionsOf(command))));
}
