"""The image of tasks that work on feeds."""
