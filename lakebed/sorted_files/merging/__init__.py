"""Many sorted files become one, by one process or several."""
