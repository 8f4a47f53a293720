"""Compiled loops over Arrow buffers: merge, gather and sort, where numba is installed.

They see addresses and numbers only; what the rows mean is said above, in `sorted_files`.
"""
