"""What the product and the bench without hardware agree on: faults, noise, the control socket."""
