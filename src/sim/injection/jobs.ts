/** What goes wrong with the work of a pool that scales, and with what tells of it. Only where there is such a pool, and not in the standard mix. */
import type { Handlers } from "./injection.ts";

type JobFault = "jobs_hang" | "demand_lies";

export const JOB_FAULTS: Handlers<JobFault> = {
  jobs_hang({ share, forMs }, injection) {
    const { jobs } = injection.world;
    if (jobs === null) return false;
    jobs.hangingShare = share;
    injection.until(forMs, () => {
      jobs.hangingShare = 0;
    });
    return true;
  },

  demand_lies({ lie, forMs }, injection) {
    const { jobs } = injection.world;
    if (jobs === null) return false;
    jobs.lies(lie);
    injection.until(forMs, () => jobs.lies(null));
    return true;
  },
};
