"""Output of the program today: rulings, messages, runs, documents. A change that moves one of them is seen here."""
