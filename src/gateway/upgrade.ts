/** Requests that ask for another protocol on their connection (WebSocket): an obligation until the connection is over. */
import { type IncomingMessage, STATUS_CODES, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { GatewayCore } from "./core.ts";
import { H1Exchange } from "./exchange-h1.ts";
import type { RequestHead } from "./headers.ts";
import type { MemberState, RouteState } from "./membership.ts";
import { Pipe } from "./pipe.ts";

export class UpgradeExchange extends H1Exchange {
  readonly #socket: Duplex;
  readonly #answer: ServerResponse;
  readonly #first: Buffer;
  #pipe: Pipe | null = null;
  #member: MemberState | null = null;

  constructor(
    core: GatewayCore,
    route: RouteState,
    request: IncomingMessage,
    answer: ServerResponse,
    path: string,
    head: RequestHead,
    socket: Duplex,
    first: Buffer,
  ) {
    super(core, route, request, answer, path, head, head.upgrade ?? "websocket");
    this.#socket = socket;
    this.#answer = answer;
    this.#first = first;
  }

  protected override takeUpgrade(member: MemberState, status: number, headers: string[], instance: Duplex): void {
    const client = this.#socket;
    this.#answer.detachSocket(client as Socket);
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: Upgrade\r\nupgrade: ${this.upgradeTo}\r\n`;
    for (let index = 0; index + 1 < headers.length; index += 2) text += `${headers[index]}: ${headers[index + 1]}\r\n`;
    client.write(`${text}\r\n`, "latin1");
    this.#member = member;
    this.#pipe = new Pipe({
      client,
      instance,
      isWebSocket: this.upgradeTo?.toLowerCase() === "websocket",
      clock: this.core.clock,
      ended: (outcome, code) => this.endUpgraded(outcome, code),
    });
    if (this.#first.length > 0) client.unshift(this.#first);
    this.memberDraining();
  }

  override memberDraining(): void {
    if (this.#member?.state === "draining") this.#pipe?.closeBefore(this.#member.deadline);
  }

  protected override breakUpgraded(code: string): void {
    this.#pipe?.instanceGone(code);
  }

  closeForStop(): void {
    this.#pipe?.closeForStop();
  }

  protected override breakOff(): void {
    this.#socket.destroy();
  }

  /** Once it is upgraded the pipe sees the client go. */
  override clientGone(): void {
    if (this.#pipe === null) super.clientGone();
  }
}
