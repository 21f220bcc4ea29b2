/** What an exchange asks of its client's protocol. */
import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { MemberState } from "./membership.ts";

export abstract class ClientSide {
  protected abstract sendHead(status: number, headers: string[], message: string): void;
  /** A whole small answer; null: no body. */
  protected abstract sendWhole(status: number, headers: string[], message: string, body: Buffer | null): void;
  /** False when the client should be given time: `clientDrained` follows. */
  protected abstract sendChunk(chunk: Buffer): boolean;
  protected abstract sendEnd(trailers: IncomingHttpHeaders): void;
  protected abstract sendInformation(status: number, headers: string[]): void;
  /** Ends the client's side so that it sees that the answer is not whole. */
  protected abstract breakOff(): void;
  protected abstract sendContinue(): void;
  protected abstract streamBody(): AsyncIterable<Buffer>;
  /** True once nothing more of the request's body will come. */
  protected abstract bodyIsOver(): boolean;
  /** Ends an upgraded connection whose member is gone, with `code` in the counts; `endUpgraded` follows. */
  protected abstract breakUpgraded(code: string): void;
  protected abstract takeUpgrade(member: MemberState, status: number, headers: string[], socket: Duplex): void;
}
