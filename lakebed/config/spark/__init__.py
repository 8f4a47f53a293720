"""Settings of where Spark runs bulk imports."""
