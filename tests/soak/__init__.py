"""Hours of steady work on one lake, with kills: nothing is lost, and nothing grows."""
