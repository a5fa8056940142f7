"""``lineproof study …``: studies of the bench and of decision rules."""
