/**
 * Serves KEDA's external scaler contract over gRPC, so that a KEDA that is there can ask for the sizes that are decided here (K11). Everything is bounded: what a
 * message may be long, and how many streams are open.
 */
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
} from "@grpc/grpc-js";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { isLoopback } from "../../kernel/loopback.ts";
import { Answers, Refusal } from "./answers.ts";
import {
  externalScalerService,
  type GetMetricSpecResponse,
  type GetMetricsRequest,
  type GetMetricsResponse,
  type IsActiveResponse,
  type ScaledObjectRef,
} from "./contract.ts";
import type { DecidedSizes } from "./port.ts";

const MESSAGE_BYTES_MAX = 64 * 1024;
export const STREAMS_MAX = 500;
export const STREAMS_PER_POOL_MAX = 8;
/** Calls of one connection at once: each stream is one. */
const CALLS_PER_CONNECTION_MAX = 600;
/** What another replica decided is heard of by looking. */
const LOOK_EVERY_MS = 2_000;

export interface KedaScalerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** PEM. Absent: plain text, on a loopback address alone. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer; readonly clientCa?: Buffer | undefined } | undefined;
  readonly tokens?: readonly string[];
  readonly sizes: DecidedSizes;
  readonly clock: Clock;
  readonly log: (level: "info" | "warn", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export interface KedaScaler {
  /** As it was bound: `127.0.0.1:6000`. */
  readonly address: string;
  close(): Promise<void>;
}

/** Throws `keda_scaler_insecure`, `keda_scaler_not_bound`. */
export async function startKedaScaler(options: KedaScalerOptions): Promise<KedaScaler> {
  const { host, port, tls } = options;
  if (tls === undefined && !isLoopback(host))
    throw new RelevoError("keda_scaler_insecure", "The scaler for KEDA listens on the network only with TLS.", {
      found: host,
      allowed: "a loopback address, or --keda-tls-cert and --keda-tls-key",
    });
  const server = new Server({
    "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
    "grpc.max_send_message_length": MESSAGE_BYTES_MAX,
    "grpc.max_concurrent_streams": CALLS_PER_CONNECTION_MAX,
  });
  const scaler = new Scaler(options);
  server.addService(externalScalerService(), { ...scaler.handlers });
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(tls.clientCa ?? null, [{ cert_chain: tls.cert, private_key: tls.key }], tls.clientCa !== undefined);
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const where = bare.includes(":") ? `[${bare}]` : bare;
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${where}:${port}`, credentials, (error, chosen) => (error === null ? resolve(chosen) : reject(error)));
  }).catch((cause: unknown) => {
    throw new RelevoError("keda_scaler_not_bound", `The scaler for KEDA cannot listen on ${where}:${port}.`, {
      cause,
      found: String(cause),
    });
  });
  return {
    address: `${where}:${bound}`,
    close: async () => {
      scaler.close();
      server.forceShutdown();
    },
  };
}

interface Stream {
  readonly pool: string;
  readonly call: ServerWritableStream<ScaledObjectRef, IsActiveResponse>;
  /** As it was told last; null: not yet. */
  told: boolean | null;
  /** A look is under way. */
  isLooking: boolean;
  isWanted: boolean;
  timer: Timer | undefined;
}

class Scaler {
  readonly #answers: Answers;
  readonly #clock: Clock;
  readonly #log: KedaScalerOptions["log"];
  readonly #streams = new Set<Stream>();
  readonly #stopListening: () => void;

  constructor({ sizes, tokens = [], clock, log }: KedaScalerOptions) {
    this.#answers = new Answers({ sizes, tokens });
    this.#clock = clock;
    this.#log = log;
    this.#stopListening = sizes.onChange((pool) => {
      for (const stream of this.#streams) if (stream.pool === pool) void this.#look(stream);
    });
  }

  get handlers(): {
    readonly IsActive: handleUnaryCall<ScaledObjectRef, IsActiveResponse>;
    readonly GetMetricSpec: handleUnaryCall<ScaledObjectRef, GetMetricSpecResponse>;
    readonly GetMetrics: handleUnaryCall<GetMetricsRequest, GetMetricsResponse>;
    readonly StreamIsActive: handleServerStreamingCall<ScaledObjectRef, IsActiveResponse>;
  } {
    return {
      IsActive: this.#unary<ScaledObjectRef, IsActiveResponse>(async (ref, bearer) => ({
        result: (await this.#answers.sizeOf(this.#answers.poolOf(ref, bearer))) > 0,
      })),
      GetMetricSpec: this.#unary<ScaledObjectRef, GetMetricSpecResponse>(async (ref, bearer) => {
        const pool = this.#answers.poolOf(ref, bearer);
        await this.#answers.sizeOf(pool);
        return this.#answers.metricSpec(pool);
      }),
      GetMetrics: this.#unary<GetMetricsRequest, GetMetricsResponse>((request, bearer) =>
        this.#answers.metrics(this.#answers.poolOf(request.scaledObjectRef, bearer)),
      ),
      StreamIsActive: (call: ServerWritableStream<ScaledObjectRef, IsActiveResponse>) => this.#open(call),
    };
  }

  close(): void {
    this.#stopListening();
    for (const stream of [...this.#streams]) this.#end(stream);
  }

  #unary<Q, A>(answer: (request: Q, bearer: string | undefined) => Promise<A>): handleUnaryCall<Q, A> {
    return (call, callback) => void this.#reply(call, callback, answer);
  }

  async #reply<Q, A>(
    call: ServerUnaryCall<Q, A>,
    callback: sendUnaryData<A>,
    answer: (request: Q, bearer: string | undefined) => Promise<A>,
  ): Promise<void> {
    let value: A;
    try {
      value = await answer(call.request, bearerOf(call.metadata.get("authorization")));
    } catch (error) {
      callback(this.#errorOf(error));
      return;
    }
    callback(null, value);
  }

  #open(call: ServerWritableStream<ScaledObjectRef, IsActiveResponse>): void {
    let pool: string;
    try {
      pool = this.#answers.poolOf(call.request, bearerOf(call.metadata.get("authorization")));
      const ofPool = [...this.#streams].filter((stream) => stream.pool === pool).length;
      if (this.#streams.size >= STREAMS_MAX || ofPool >= STREAMS_PER_POOL_MAX)
        throw new Refusal(
          status.RESOURCE_EXHAUSTED,
          `no more streams are open at once than ${STREAMS_MAX}, of one pool ${STREAMS_PER_POOL_MAX}`,
        );
    } catch (error) {
      call.emit("error", Object.assign(new Error(), this.#errorOf(error)));
      return;
    }
    const stream: Stream = { pool, call, told: null, isLooking: false, isWanted: false, timer: undefined };
    this.#streams.add(stream);
    for (const event of ["cancelled", "close", "error"]) call.on(event, () => this.#forget(stream));
    void this.#look(stream);
  }

  /** One look at a time; whoever asks meanwhile gets another one after it. */
  async #look(stream: Stream): Promise<void> {
    if (stream.isLooking) {
      stream.isWanted = true;
      return;
    }
    stream.isLooking = true;
    stream.timer?.cancel();
    do {
      stream.isWanted = false;
      try {
        const isActive = (await this.#answers.sizeOf(stream.pool)) > 0;
        if (!this.#streams.has(stream)) return;
        if (isActive !== stream.told) stream.call.write({ result: isActive });
        stream.told = isActive;
      } catch (error) {
        // What is not known yet is waited for; a Pool that is gone ends its streams.
        if (error instanceof Refusal && error.code === status.UNAVAILABLE) continue;
        this.#forget(stream);
        stream.call.emit("error", Object.assign(new Error(), this.#errorOf(error)));
        return;
      }
    } while (stream.isWanted);
    stream.isLooking = false;
    if (this.#streams.has(stream)) stream.timer = this.#clock.after(LOOK_EVERY_MS, () => void this.#look(stream));
  }

  #end(stream: Stream): void {
    this.#forget(stream);
    stream.call.end();
  }

  #forget(stream: Stream): void {
    stream.timer?.cancel();
    this.#streams.delete(stream);
  }

  #errorOf(error: unknown): { readonly code: status; readonly details: string } {
    if (error instanceof Refusal) return { code: error.code, details: error.message };
    this.#log("warn", "a call of KEDA could not be answered", { error });
    return { code: status.INTERNAL, details: "it could not be answered" };
  }
}

/** `Bearer TOKEN`. */
function bearerOf([value]: readonly (string | Buffer)[]): string | undefined {
  const text = value === undefined ? undefined : String(value);
  return text?.startsWith("Bearer ") ? text.slice("Bearer ".length) : undefined;
}
