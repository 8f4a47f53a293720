"""The list of verbs: one short file for each function that is deployed, one folder for each
room."""
