"""What releases run of an instance, as its processes report."""
