"""Clients of the emulated services, for the account's root or for a role."""

from __future__ import annotations

import threading
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

from localcloud.services.cloud_clock import CloudClock
from localcloud.services.emulator import REGION, ROOT_KEY, Emulator

SESSION_SECONDS = 43_200
RENEWED_SECONDS = 900
"""Seconds before its end at which a session of a role is replaced by a new one."""

EVENT_SOURCE = "event-source"
"""Part of the user agent of what Lambda asks by a function's role, as in `emulator_requests.py`."""

Client = Any
"""One of boto3's: their classes are made at run time."""


class RoleSession:
    """Credentials of a role, and until when they are given out, in the cloud's time."""

    def __init__(self, credentials: dict[str, Any], until: float) -> None:
        self.until = until
        self.variables = {
            "AWS_ACCESS_KEY_ID": str(credentials["AccessKeyId"]),
            "AWS_SECRET_ACCESS_KEY": str(credentials["SecretAccessKey"]),
            "AWS_SESSION_TOKEN": str(credentials["SessionToken"]),
        }


class Amazon:
    """The emulated account. clock: the cloud's. Safe to share among threads."""

    def __init__(self, emulator: Emulator, *, clock: CloudClock) -> None:
        self._emulator = emulator
        self._clock = clock
        self._lock = threading.RLock()
        self._session = boto3.Session(botocore_session=botocore.session.Session())
        self._clients: dict[tuple[str, str], Client] = {}
        self._roles: dict[str, RoleSession] = {}

    def client(self, service: str) -> Client:
        """Return a client with all permissions."""
        with self._lock:
            if (service, "") not in self._clients:
                self._clients[service, ""] = self._made(service, ROOT_KEY, ROOT_KEY, None)
            return self._clients[service, ""]

    def client_of(self, service: str, role: str) -> Client:
        """Return a client with the permissions of a role, by its ARN, for what Lambda itself asks a
        queue or a stream."""
        session = self.session_of(role)
        key = session.variables["AWS_ACCESS_KEY_ID"]
        with self._lock:
            if (service, key) not in self._clients:
                self._clients[service, key] = self._made(
                    service,
                    key,
                    session.variables["AWS_SECRET_ACCESS_KEY"],
                    session.variables["AWS_SESSION_TOKEN"],
                    user_agent_extra=EVENT_SOURCE,
                )
            return self._clients[service, key]

    def session_of(self, role: str) -> RoleSession:
        """Return credentials of a role."""
        with self._lock:
            now = self._clock.seconds()
            found = self._roles.get(role)
            if found is None or now >= found.until:
                answer = self.client("sts").assume_role(
                    RoleArn=role, RoleSessionName="local", DurationSeconds=SESSION_SECONDS
                )
                until = now + SESSION_SECONDS - RENEWED_SECONDS
                found = self._roles[role] = RoleSession(answer["Credentials"], until)
            return found

    def environment(self) -> dict[str, str]:
        """Return the variables that lead programs to the emulated services."""
        return self._emulator.environment()

    def close(self) -> None:
        """Close connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _made(
        self,
        service: str,
        key: str,
        secret: str,
        token: str | None,
        *,
        user_agent_extra: str | None = None,
    ) -> Client:
        make: Any = self._session.client
        return make(
            service,
            region_name=REGION,
            endpoint_url=self._emulator.url,
            verify=str(self._emulator.certificate) if self._emulator.secured else None,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            config=Config(
                user_agent_extra=user_agent_extra,
                retries={"total_max_attempts": 3, "mode": "standard"},
                max_pool_connections=32,
                s3={"addressing_style": "path"},
            ),
        )
