"""Costs of requests: how many were sent, the ledger of them, and what Amazon bills for them."""
