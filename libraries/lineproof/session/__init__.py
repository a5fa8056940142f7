"""From a plan to verdicts: the open session, judging, bookkeeping, progress."""
