"""ElasticMQ, a second server of SQS's language."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.jars import Jars
from tests.servers.running import free_ports, running
from tests.servers.s3 import S3Server, http_status

JARS = Jars("ElasticMQ", "elasticmq", ("org.elasticmq", "elasticmq-server_2.13"), "1.7.1")


@contextmanager
def elasticmq_server(folder: Path) -> Iterator[S3Server]:
    """Run ElasticMQ: strict about SQS's limits, messages in memory."""
    java = JARS.java()
    (port,) = free_ports(1)
    (folder / "elasticmq.conf").write_text(CONFIGURATION.format(port=port))
    command = [
        java,
        "-Xmx256m",
        "-Dconfig.file=elasticmq.conf",
        "-cp",
        f"{JARS.folder}/*",
        "org.elasticmq.server.Main",
    ]
    with running(command, folder, is_ready=lambda: http_status(port, "GET", "/") > 0):
        yield S3Server("elasticmq", f"http://127.0.0.1:{port}")


CONFIGURATION = """
include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1", sqs-limits = strict }}
rest-stats {{ enabled = false }}
generate-node-address = false
aws {{ region = us-east-1, accountId = 000000000000 }}
"""
