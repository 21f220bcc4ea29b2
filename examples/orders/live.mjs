/**
 * `/live`: WebSocket sessions. Each message has an id, which is written to the ledger and then acknowledged. Before a session is closed because a deadline
 * comes first, the client is told (`closing`), sends no more, and says `bye`; by then everything that it sent is acknowledged.
 */
const MAX_MESSAGE_BYTES = 16 * 1024;
const POLICY_VIOLATION = 1008;
const SERVER_ERROR = 1011;

export function createLive(ledger) {
  let instance;
  let loading;
  const load = () =>
    (loading ??= import("ws").then(
      ({ WebSocketServer }) => new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false }),
    ));

  return {
    attach(made) {
      instance = made;
    },

    /** Loads what sessions need; called once requests are served, as the first session comes later than the first request. */
    warm: load,

    async upgrade(req, socket, head) {
      if (req.url.split("?")[0] !== "/live")
        return void socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      const wss = await load();
      wss.handleUpgrade(req, socket, head, (ws) => {
        const session = new Session(ws, ledger);
        instance.registerWebSocket(socket, ws, { beforeClose: () => session.wind() });
      });
    },
  };
}

class Session {
  #ws;
  #ledger;
  #unacknowledged = new Set();
  #bye = Promise.withResolvers();

  constructor(ws, ledger) {
    this.#ws = ws;
    this.#ledger = ledger;
    ws.on("message", (data) => this.#take(data));
    ws.on("error", () => ws.terminate());
    ws.on("close", () => this.#bye.resolve());
  }

  /** Ends the conversation in order; the SDK bounds it in time. */
  async wind() {
    this.#ws.send(JSON.stringify({ type: "closing" }));
    await this.#bye.promise;
    await Promise.all(this.#unacknowledged);
  }

  #take(data) {
    let message;
    try {
      message = JSON.parse(String(data));
    } catch {
      return this.#ws.close(POLICY_VIOLATION, "a message must be JSON");
    }
    if (message.type === "bye") return this.#bye.resolve();
    if (typeof message.id !== "string") return this.#ws.close(POLICY_VIOLATION, "a message must have an id");
    const acknowledged = this.#acknowledge(message.id).finally(() => this.#unacknowledged.delete(acknowledged));
    this.#unacknowledged.add(acknowledged);
  }

  async #acknowledge(id) {
    try {
      await this.#ledger.append(id, "message");
      this.#ws.send(JSON.stringify({ type: "ack", id }));
    } catch (error) {
      console.error(JSON.stringify({ message: "a message could not be written", error: String(error) }));
      this.#ws.close(SERVER_ERROR, "the ledger cannot be written");
    }
  }
}
