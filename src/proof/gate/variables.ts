/** In what two runs differ: one variable, or nothing can be concluded (T10). */
import type { Conditions } from "./record.ts";

export type Session = Readonly<Record<string, string>>;

export interface Variable {
  readonly name: string;
  /** `unset` where a run did not have it. */
  readonly experiment: string;
  readonly control: string;
}

export function sessionDifferences(experiment: Session, control: Session): readonly Variable[] {
  const names = [...new Set([...Object.keys(experiment), ...Object.keys(control)])].toSorted();
  return names.flatMap((name) => differing(name, experiment[name], control[name]));
}

/** What the document declares stands for a session that the engine did not tell. */
export function differences(
  experiment: Conditions,
  control: Conditions,
  declared: { readonly experiment: Session; readonly control: Session },
): readonly Variable[] {
  const areTold = experiment.session !== null && control.session !== null;
  return [
    ...sessionDifferences(areTold ? (experiment.session ?? {}) : declared.experiment, areTold ? (control.session ?? {}) : declared.control),
    ...differing("the coordinator's process", experiment.bootId, control.bootId),
    ...differing("the engine's version", experiment.version, control.version),
    ...differing("the engine's environment", experiment.environment, control.environment),
    ...differing("the user", experiment.user, control.user),
    ...differing("the number of workers", String(experiment.workers), String(control.workers)),
    ...differing("the statements", experiment.statements.join("; "), control.statements.join("; ")),
  ];
}

function differing(name: string, experiment = "unset", control = "unset"): readonly Variable[] {
  return experiment === control ? [] : [{ name, experiment, control }];
}

export function tellVariable({ name, experiment, control }: Variable): string {
  return `${name} (${shortened(experiment)} → ${shortened(control)})`;
}

function shortened(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}
