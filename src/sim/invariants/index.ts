/** All checkers of a run. I15, I16 are judged at its end: after the faults stop the pool must converge (`run-seed.ts`). */
import { onlyTheCurrentEpochCommits } from "./authority.ts";
import { candidateFailuresAreBounded, inventoriesAreFew, sizeIsBounded } from "./bounds.ts";
import { type Checker, ofTheStore } from "./checker.ts";
import { cordonIsProven, foreignCordonsStay, onlyOwnObjectsAreTouched } from "./cluster-writes.ts";
import {
  confirmedSealIsEmpty,
  lostProcessesAreNotDrained,
  noObligationIsLostByADelete,
  strangersLeaveTrafficFirst,
  voluntaryDrainHasASpare,
} from "./drains.ts";
import { deletedIsAbsent, doneStepsHaveTheirEffect, protectionIsProven } from "./effects.ts";
import { standbyIsHeldBack, whoCannotGoHoldsNoPlace } from "./evacuation.ts";
import { evidenceIsImmutable } from "./evidence.ts";
import { movesBeginWhereTheInstanceIs } from "./moves.ts";
import { lostProcessesAreFound, oneObserverCondemnsNoMajority } from "./observer.ts";
import { nothingUnexpectedIsThrown } from "./faults.ts";
import { flagOffMeansNoMutation } from "./flag.ts";
import { lossesAreCounted } from "./losses.ts";
import { candidatesPause, conflictsPause, retriesPause } from "./pauses.ts";
import {
  admissionsKeepToTheBucket,
  classesAreNotInverted,
  flagOffPlansNothing,
  noPlaceIsForgotten,
  orderHasNoMeaning,
  whoIsLeftAloneHasAReason,
} from "./plans.ts";
import { disruptionsAreFew, drainsBearTheGravestLoss, frozenMeansNoDecision } from "./policy.ts";
import { replayedStepsActOnce, stepsAreRecordedFirst, whatIsWithdrawnIsNotTriedAgain } from "./steps.ts";
import { countsAddUp, trafficFollowsAPassedCheck } from "./traffic.ts";
import {
  gatewaysGoForward,
  holdersStopThemselves,
  leaseLeavesWhatIsOver,
  nobodyIsLetOnBeforeTheFence,
  oneWriterPerWorkload,
  tombstonesStay,
} from "./writers.ts";
import { liesChangeNoSize, oneOwnerOfTheSize, sizesKeepToTheirBounds, slotsDoNotLeak, stuckPoolsDoNotGrow } from "./scaling.ts";

export function allCheckers(): readonly Checker[] {
  return [
    oneWriterPerWorkload(),
    tombstonesStay(),
    ofTheStore(leaseLeavesWhatIsOver),
    ofTheStore(nobodyIsLetOnBeforeTheFence),
    holdersStopThemselves(),
    gatewaysGoForward(),
    oneObserverCondemnsNoMajority(),
    lostProcessesAreFound(),
    movesBeginWhereTheInstanceIs(),
    admissionsKeepToTheBucket(),
    classesAreNotInverted(),
    standbyIsHeldBack(),
    whoCannotGoHoldsNoPlace(),
    noPlaceIsForgotten(),
    orderHasNoMeaning(),
    whoIsLeftAloneHasAReason(),
    flagOffPlansNothing(),
    lostProcessesAreNotDrained(),
    ofTheStore(evidenceIsImmutable),
    onlyTheCurrentEpochCommits(),
    voluntaryDrainHasASpare(),
    confirmedSealIsEmpty(),
    strangersLeaveTrafficFirst(),
    ofTheStore(noObligationIsLostByADelete),
    cordonIsProven(),
    foreignCordonsStay(),
    onlyOwnObjectsAreTouched(),
    trafficFollowsAPassedCheck(),
    countsAddUp(),
    ofTheStore(candidateFailuresAreBounded),
    inventoriesAreFew(),
    sizeIsBounded(),
    flagOffMeansNoMutation(),
    ofTheStore(replayedStepsActOnce),
    stepsAreRecordedFirst(),
    ofTheStore(whatIsWithdrawnIsNotTriedAgain),
    doneStepsHaveTheirEffect(),
    deletedIsAbsent(),
    protectionIsProven(),
    lossesAreCounted(),
    ofTheStore(retriesPause),
    ofTheStore(candidatesPause),
    conflictsPause(),
    disruptionsAreFew(),
    frozenMeansNoDecision(),
    ofTheStore(drainsBearTheGravestLoss),
    ofTheStore(oneOwnerOfTheSize),
    sizesKeepToTheirBounds(),
    stuckPoolsDoNotGrow(),
    liesChangeNoSize(),
    slotsDoNotLeak(),
    nothingUnexpectedIsThrown(),
  ];
}
