"""The questions, a module for each thing that is looked at."""
