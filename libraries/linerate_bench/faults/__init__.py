"""What goes wrong on the modelled bench when asked to: the model wrapped, the schedule, the counters."""
