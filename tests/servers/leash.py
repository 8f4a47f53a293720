"""Runs a program until its own standard input ends: a server ends with whoever started it.

Its process id is in the file `pid`, for tests that kill it.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path


def main(command: list[str]) -> int:
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    Path("pid").write_text(str(server.pid))

    def end_with_the_starter() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        server.terminate()
        try:
            server.wait(2)
        except subprocess.TimeoutExpired:
            server.kill()

    threading.Thread(target=end_with_the_starter, daemon=True).start()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
