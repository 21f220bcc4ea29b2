/** A queue of notices as a port; what stands behind it is SQS (`sdk-queue.ts`). */

export interface QueueMessage {
  /** The message's own, the same at each delivery. */
  readonly id: string;
  /** Of this delivery. */
  readonly receipt: string;
  readonly body: string;
  /** How often it was delivered, this time included, to whomever. */
  readonly receiveCount: number;
}

export interface ReceiveOptions {
  /** At most ten. */
  readonly max: number;
  readonly waitSeconds: number;
  /** How long nobody else gets what was received. */
  readonly visibilitySeconds: number;
}

export interface NoticeQueue {
  /** For people, metrics and logs. */
  readonly name: string;
  /** Waits for a message, as long as it was told; rejects when the signal aborts. */
  receive(options: ReceiveOptions, signal: AbortSignal): Promise<readonly QueueMessage[]>;
  /** Of those that could not be deleted the ids: they come again. */
  delete(messages: readonly QueueMessage[]): Promise<readonly string[]>;
  /** When whoever asks gets them again; from now. Deliveries that are no longer ours are left alone. */
  setVisibility(messages: readonly QueueMessage[], seconds: number): Promise<void>;
  close(): void;
}
