/** What an examination found, and what to do about it. */
export const FINDING_STATES = ["ok", "warning", "held", "refused"] as const;

export interface Finding {
  readonly check: string;
  /** `refused`: a claim of Relevo's does not hold as it stands. `held`: something waits for an operator. */
  readonly state: (typeof FINDING_STATES)[number];
  readonly message: string;
  readonly todo: string | null;
}

export const ok = (check: string, message: string): Finding => ({ check, state: "ok", message, todo: null });

export const bad = (check: string, state: Exclude<Finding["state"], "ok">, message: string, todo: string): Finding => ({
  check,
  state,
  message,
  todo,
});
