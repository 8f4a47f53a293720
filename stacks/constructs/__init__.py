"""What stacks repeat: each owns its alarms and its dead letters."""
