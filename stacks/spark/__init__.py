"""Clusters of EMR, on which bulk imports may run."""
