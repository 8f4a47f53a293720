"""How many users' jobs are lost while this release replaces the one before under load: the story of
`make test-upgrade`, in the local cloud."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Figure, table
from tests.cloud.test_life import deployed
from tests.cloud.upgrades.two_releases import has_history
from tests.cloud.upgrades.upgrade_story import Load, Releases, upgrade


def run() -> list[Figure]:
    """Count them; takes ten minutes, and twenty on a busy machine. Counts nothing where the
    release before cannot be taken from the history of this repository."""
    if not has_history():
        print("no history here: lost jobs of an upgrade are not counted", file=sys.stderr)
        return []
    with TemporaryDirectory(prefix="lakebed-upgrade-") as name:
        folder = Path(name)
        releases = Releases(folder / "releases")
        load = Load(releases)
        upgrade(releases, load, folder / "cloud", look=lambda _: None)
        with deployed(releases.after, folder / "cloud") as instance:
            lost = load.lost(instance)
    return [
        Figure("upgrade.jobs", len(load.given), "jobs"),
        Figure("upgrade.jobs_lost", len(lost), "jobs", 0),
    ]


if __name__ == "__main__":
    print(table(run()))
