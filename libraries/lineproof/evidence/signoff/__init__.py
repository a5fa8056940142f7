"""The sheet that a run is signed off with: what was promised, what was measured, who answers for what."""
