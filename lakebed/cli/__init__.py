"""The command `lakebed`: text for people, JSON for pipes, an exit code for each kind of error."""
