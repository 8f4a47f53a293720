"""What processes of a cluster run: they have a lake's objects, and the driver has the lake."""
