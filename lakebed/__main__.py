"""`python -m lakebed`: the command, where the folder of scripts is not on the path."""

from lakebed.cli.main import main

if __name__ == "__main__":
    main()
