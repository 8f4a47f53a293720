"""Platforms of AWS that run Spark: EMR Serverless, clusters for one run, and shared ones."""
