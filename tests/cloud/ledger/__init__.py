"""The usage ledger of what is deployed."""
