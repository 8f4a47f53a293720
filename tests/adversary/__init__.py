"""A random tester: real processes, real files, every fault that one machine can have."""
