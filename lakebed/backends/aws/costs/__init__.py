"""What requests cost: how many were sent, the ledger of them, and what Amazon says of it."""
