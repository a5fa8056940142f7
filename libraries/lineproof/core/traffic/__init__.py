"""Traffic: profiles and the words that name them, TRex profiles, captures, headers."""
