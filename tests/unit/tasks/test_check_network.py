"""A network of somebody's is refused when tasks could not reach S3 from it."""

import pytest

from lakebed.errors import InvalidError
from lakebed.tasks.check_network import CheckNetwork


def test_a_network_that_leads_to_s3_is_taken() -> None:
    CheckNetwork("vpc-1", services=lambda: {"s3", "dynamodb"}).run()


def test_another_is_refused_with_its_name_and_what_to_do() -> None:
    with pytest.raises(InvalidError, match=r"vpc=vpc-1.*add a gateway endpoint"):
        CheckNetwork("vpc-1", services=lambda: {"dynamodb"}).run()
