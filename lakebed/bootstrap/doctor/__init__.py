"""Gives the doctor what it looks at: this machine, a lake, and what was deployed."""
