"""What functions and tasks of the local cloud ask of AWS."""
