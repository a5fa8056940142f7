"""The sentence: its grammar, its requirement, the goals, and the decision rule."""
