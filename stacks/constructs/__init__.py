"""Builds what stacks repeat: each construct owns its alarms and its dead letters."""
