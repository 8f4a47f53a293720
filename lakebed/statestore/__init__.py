"""State: transactions, what they lead to, the head that commits them, and snapshots."""
