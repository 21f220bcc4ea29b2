/** The controller's face to an existing KEDA: where it listens, with which certificate, and who may ask. */
import { readFileSync } from "node:fs";
import type { DecidedSizes } from "../../control/decided-sizes.ts";
import { type KedaScaler, startKedaScaler } from "../../demand/keda/server.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/system.ts";
import type { Logger } from "../../server/log.ts";

export interface KedaScalerSetup {
  /** `127.0.0.1:6000`. */
  readonly listen: string;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly clientCaFile?: string | undefined;
  /** A token a line. */
  readonly tokenFile?: string | undefined;
}

const LEAST_TOKEN_CHARS = 16;

/** Throws `keda_scaler_invalid`, `keda_scaler_insecure`, `keda_scaler_not_bound`. */
export async function startScaler(setup: KedaScalerSetup, sizes: DecidedSizes, log: Logger): Promise<KedaScaler> {
  const { host, port } = addressOf(setup.listen);
  const { certFile, keyFile, clientCaFile, tokenFile } = setup;
  if ((certFile === undefined) !== (keyFile === undefined) || (certFile === undefined && clientCaFile !== undefined))
    throw invalid("A certificate is told with its key.", "--keda-tls-cert and --keda-tls-key, and with them --keda-client-ca");
  const scaler = await startKedaScaler({
    ...{ host, port, sizes, clock: systemClock },
    tls:
      certFile === undefined || keyFile === undefined
        ? undefined
        : { cert: read(certFile), key: read(keyFile), clientCa: clientCaFile === undefined ? undefined : read(clientCaFile) },
    tokens: tokenFile === undefined ? [] : tokensIn(tokenFile),
    log: (level, message, fields) => log[level](fields, message),
  });
  log.info({ address: scaler.address, tls: certFile !== undefined }, "KEDA may ask here");
  return scaler;
}

function addressOf(listen: string): { readonly host: string; readonly port: number } {
  const { host, port } = /^(?<host>.+):(?<port>\d{1,5})$/.exec(listen)?.groups ?? {};
  if (host === undefined || port === undefined || Number(port) > 65_535)
    throw invalid("The address for KEDA is not valid.", "an address and a port, such as 127.0.0.1:6000", listen);
  return { host, port: Number(port) };
}

function tokensIn(file: string): readonly string[] {
  const tokens = read(file)
    .toString("utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (tokens.length === 0 || tokens.some((token) => token.length < LEAST_TOKEN_CHARS))
    throw invalid("The file of tokens for KEDA is not valid.", `a token a line, each of at least ${LEAST_TOKEN_CHARS} characters`, file);
  return tokens;
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new RelevoError("keda_scaler_invalid", `${file} cannot be read.`, { found: file, cause });
  }
}

function invalid(sentence: string, allowed: string, found?: string): RelevoError {
  return new RelevoError("keda_scaler_invalid", sentence, { allowed, ...(found === undefined ? {} : { found }) });
}
