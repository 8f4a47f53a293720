"""Contracts of the ledger of usage."""
