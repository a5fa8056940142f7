"""Loads that the generator itself carries: calibrations, published limits of cards, their part in a verdict."""
