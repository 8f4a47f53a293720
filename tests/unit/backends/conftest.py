"""Requests to AWS are checked, whoever answers them."""

from tests.servers.checked_parameters import parameters_are_checked  # noqa: F401 - a fixture
