"""The part that the product and the bench without hardware share: faults, noise, habits."""
