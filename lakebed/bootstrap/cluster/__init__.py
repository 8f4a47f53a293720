"""Programs of a cluster's processes: they have a lake's objects, and the driver has the lake."""
