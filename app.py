"""Synthesizes the stacks of one instance, for `cdk deploy --all -c instance=NAME`."""

import sys

from lakebed.errors import InvalidError
from stacks.instance import instance_app

if __name__ == "__main__":
    try:
        instance_app().synth()
    except InvalidError as error:
        code = error.code()
        sys.exit(f"cannot deploy: {error}\n  code: {code}, see `lakebed explain {code}`")
