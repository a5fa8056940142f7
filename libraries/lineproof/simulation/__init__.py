"""The part that the product and the bench without hardware share: faults, noise, the control socket."""
