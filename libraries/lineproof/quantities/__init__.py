"""What a sentence may promise: one folder a quantity."""
