/**
 * One GET over a connection of its own, as cheap as it can be: many instances are asked each second. A kept connection would say less, for it was accepted when
 * the process was still well; and a client with a pool for each address costs three times as much.
 *
 * Of HTTP/1.1 it reads what an answer may consist of (interim answers, a length, chunks, or all until the end); headers are looked at for that alone.
 */
import { connect, type Socket } from "node:net";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { AnswerReader, type HttpAnswer } from "./answer-reader.ts";

export interface GetOnce {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** As the `Host` header says it. */
  readonly authority: string;
  /** More of them, each with its name and without line breaks. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly connectLimitMs: number;
  /** From the beginning to the last byte. */
  readonly limitMs: number;
  readonly answerBytesMax: number;
  readonly clock: Clock;
  /** Whoever gives up for all. */
  readonly sockets: Set<Socket>;
}

/** Errors have a `code`: the system's, `CONNECT_LIMIT`, `LIMIT`, `ENDED_EARLY`, or of the reader. */
export function getOnce(get: GetOnce): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { clock, sockets } = get;
    const reader = new AnswerReader(get.answerBytesMax);
    const socket = connect({ host: get.host, port: get.port, noDelay: true });
    sockets.add(socket);
    let isConnected = false;
    let timer: Timer;
    const close = (): void => {
      timer.cancel();
      sockets.delete(socket);
      socket.destroy();
    };
    const fail = (error: unknown): void => {
      close();
      reject(error as Error);
    };
    const finish = (answer: HttpAnswer | undefined): void => {
      if (answer === undefined) return;
      close();
      resolve(answer);
    };
    const outOfTime = (): void => fail(faultWith("LIMIT", "the limit of the call"));
    timer = clock.after(Math.min(get.connectLimitMs, get.limitMs), () => {
      if (!isConnected) return fail(faultWith("CONNECT_LIMIT", "no connection in time"));
      const leftMs = get.limitMs - get.connectLimitMs;
      if (leftMs <= 0) return outOfTime();
      timer = clock.after(leftMs, outOfTime);
    });
    socket.once("connect", () => {
      isConnected = true;
    });
    socket.on("error", fail);
    socket.on("data", (chunk: Buffer) => attempt(() => finish(reader.push(chunk)), fail));
    socket.once("close", () =>
      attempt(() => {
        const answer = reader.end();
        if (answer === undefined) fail(faultWith("ENDED_EARLY", "the connection ended before the answer"));
        else finish(answer);
      }, fail),
    );
    const more = Object.entries(get.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET ${get.path} HTTP/1.1\r\nhost: ${get.authority}\r\nconnection: close\r\n${more.join("")}\r\n`);
  });
}

function attempt(work: () => void, fail: (error: unknown) => void): void {
  try {
    work();
  } catch (error) {
    fail(error);
  }
}

function faultWith(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
