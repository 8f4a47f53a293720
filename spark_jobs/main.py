"""What EMR Serverless runs. Its argument: the name of a request for a bulk import."""

import sys

from spark_jobs.import_message import run

if __name__ == "__main__":
    run(sys.argv[1])
