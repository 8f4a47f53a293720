"""Runs the command of the local cloud, in a checkout: `python -m localcloud`."""

from localcloud.commands import program

program.main(prog_name="python -m localcloud")
