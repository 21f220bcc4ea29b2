/** Faults of what operators ask for, shown at crash points. */
import { crashes, type Mutant } from "../mutant.ts";

export const OPERATOR: readonly Mutant[] = [
  {
    name: "uncordon-without-uid",
    rule: "I8: a node is uncordoned under its UID",
    file: "src/act/steps/uncordon-node.ts",
    find: "        uid: node.uid,\n",
    replace: "",
    shownBy: crashes("uncordon"),
  },
  {
    name: "uncordon-without-version",
    rule: "I8: a node is uncordoned under its resourceVersion",
    file: "src/act/steps/uncordon-node.ts",
    find: "        resourceVersion: seen.metadata.resourceVersion,\n",
    replace: "",
    shownBy: crashes("uncordon"),
  },
  {
    name: "uncordon-probe-always-happened",
    rule: "D5/effect: what is recorded as done was done",
    file: "src/act/steps/uncordon-node.ts",
    find: "    if (annotationOf(seen, ANNOTATIONS.cordonedBy) === cordonedBy) return NOT_HAPPENED;\n    return isUnschedulable(seen) ? NOT_HAPPENED : happened",
    replace: '    void cordonedBy;\n    return isUnschedulable(seen) && seen.kind === "" ? NOT_HAPPENED : happened',
    shownBy: crashes("uncordon"),
  },
  {
    name: "strangers-deleted-by-name",
    rule: "I8: every delete carries a UID",
    file: "src/act/steps/owned-objects.ts",
    find: "preconditions: { uid: object.uid }, ",
    replace: "",
    shownBy: crashes("recover"),
  },
];
