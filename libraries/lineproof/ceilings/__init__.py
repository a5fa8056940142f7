"""What the generator itself can carry: calibrations, published limits of cards, and what they make of a verdict."""
