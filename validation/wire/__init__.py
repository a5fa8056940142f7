"""How fast, how exactly and how truthfully the bench sends real frames, beside other senders."""
