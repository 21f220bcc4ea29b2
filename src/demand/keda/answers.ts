/**
 * What KEDA is told, and what it is refused. The metric *is* the size that was decided, and its target is 1: the HorizontalPodAutoscaler of KEDA then wants as many
 * replicas as we do.
 *
 * 1. Nothing that is asked can name a Pool of another namespace than the ScaledObject's.
 * 2. What is not known is an error, on which KEDA leaves everything as it is; it is never a zero and never NaN (K11).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { status } from "@grpc/grpc-js";
import type { GetMetricSpecResponse, GetMetricsResponse, ScaledObjectRef } from "./contract.ts";
import type { DecidedSizes } from "./port.ts";

const POOL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;
const TARGET = 1;

export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: status;

  constructor(code: status, message: string) {
    super(message);
    this.code = code;
  }
}

export interface AnswersParts {
  readonly sizes: DecidedSizes;
  /** One of these must be in the trigger's metadata as `token`, or in the call's as a bearer token; none: nobody is asked for one. */
  readonly tokens: readonly string[];
}

export class Answers {
  readonly #sizes: DecidedSizes;
  readonly #tokens: readonly Buffer[];
  /** What was answered last, for while nobody can say. Only of Pools that were there. */
  readonly #held = new Map<string, number>();

  constructor({ sizes, tokens }: AnswersParts) {
    this.#sizes = sizes;
    this.#tokens = tokens.map(digest);
  }

  /** Throws `Refusal`. `bearer`: of the call. */
  poolOf(ref: ScaledObjectRef | null, bearer: string | undefined): string {
    const metadata = ref?.scalerMetadata ?? {};
    const said = (key: string): string | undefined => (Object.hasOwn(metadata, key) ? metadata[key] : undefined);
    this.#refuseStranger(said("token") ?? bearer);
    const pool = said("pool");
    if (pool === undefined || !POOL.test(pool))
      throw new Refusal(status.INVALID_ARGUMENT, "the trigger's metadata must name its pool: namespace/name");
    if (pool.split("/")[0] !== ref?.namespace) throw noSuchPool(pool);
    return pool;
  }

  /** Throws `Refusal`. */
  async sizeOf(pool: string): Promise<number> {
    let size: number | null | undefined;
    try {
      size = await this.#sizes.sizeOf(pool);
    } catch {
      size = this.#held.get(pool) ?? null;
    }
    if (size === undefined) {
      this.#held.delete(pool);
      throw noSuchPool(pool);
    }
    if (size === null || !Number.isSafeInteger(size) || size < 0)
      throw new Refusal(status.UNAVAILABLE, `nothing was decided yet for pool ${pool}`);
    this.#held.set(pool, size);
    return size;
  }

  metricSpec(pool: string): GetMetricSpecResponse {
    return { metricSpecs: [{ metricName: metricOf(pool), targetSize: TARGET, targetSizeFloat: TARGET }] };
  }

  async metrics(pool: string): Promise<GetMetricsResponse> {
    const size = await this.sizeOf(pool);
    return { metricValues: [{ metricName: metricOf(pool), metricValue: size, metricValueFloat: size }] };
  }

  #refuseStranger(token: string | undefined): void {
    if (this.#tokens.length === 0) return;
    const given = digest(token ?? "");
    if (!this.#tokens.some((known) => timingSafeEqual(known, given)))
      throw new Refusal(status.UNAUTHENTICATED, "the trigger's metadata holds no token that is good here");
  }
}

function metricOf(pool: string): string {
  return `relevo-${pool.replace("/", "-")}`;
}

/** The same for one of another namespace: who asks does not learn what is there. */
function noSuchPool(pool: string): Refusal {
  return new Refusal(status.NOT_FOUND, `there is no pool ${pool} with spec.scale in the namespace of the ScaledObject`);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
