"""`python -m linerate …`: what is done with a bench besides testing with it."""
