"""Kernels as machine code: compiled from Python by numba, kept on disk, loaded and called.

Loops know of it the decorators (`compiling`) and the instructions (`memory`), and nothing of numba.
"""
