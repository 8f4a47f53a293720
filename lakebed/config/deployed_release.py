"""The release that a deployment writes down: that of the program that deploys."""

from __future__ import annotations

from lakebed.model.releases import THIS

DEPLOYED_RELEASE = THIS.name
