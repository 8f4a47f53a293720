"""Runs a bulk import on EMR Serverless. Its argument: the name of a request for one."""

import sys

from spark_jobs.import_message import run

if __name__ == "__main__":
    run(sys.argv[1])
