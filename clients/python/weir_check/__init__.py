"""Asks the sidecar of a pod, by Weir's check API. It needs the standard library alone."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any, Literal, Sequence
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:15010"
DEFAULT_SOCKET = "unix:///var/run/weir.dev/check.sock"  # of pods with the annotation config.weir.dev/check-socket

Source = Literal["Lease", "Store", "LocalShare", "FailureAction", "Drain", "Bypass"]
Reason = Literal["Exhausted", "TooLarge", "Amnesia", "ClockBehind"]
Admission = Literal["Now", "Later", "Never", "Unknown"]


class CheckError(Exception):
    """An answer that decides nothing: detail names the field that is wrong, and the cure."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(f"{status} {title}: {detail}")
        self.status, self.title, self.detail = status, title, detail


@dataclass(frozen=True)
class Query:
    """Names a counter, and units of it."""

    policy: str  # a RateLimitPolicy in the pod's namespace that selects the pod
    limit: str  # one of its limits
    key: str | Sequence[str] | None = None
    tenant: str | None = None  # who is charged, where the limit has fairness
    cost: int = 1

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"policy": self.policy, "limit": self.limit, "cost": self.cost}
        if self.key is not None:
            body["key"] = self.key if isinstance(self.key, str) else list(self.key)
        if self.tenant is not None:
            body["tenant"] = self.tenant
        return body


@dataclass(frozen=True)
class Decision:
    allowed: bool  # whether to go on, after delay_ms
    limit: int
    remaining: int
    reset_after_ms: int  # until nothing counts any more
    retry_after_ms: int  # until it may be allowed; 0 when waiting does not help
    delay_ms: int


@dataclass(frozen=True)
class State:
    """How a query would fare."""

    allowed: bool
    limit: int
    remaining: int
    reset_after_ms: int
    retry_after_ms: int
    delay_ms: int
    credits: int  # that the sidecar holds
    source: Source  # would decide
    reason: Reason | None = None  # why the cost is refused
    store_age_ms: int | None = None  # since the store was read, at most
    unread: str | None = None  # why it was not
    shared: bool = False  # the key would share a counter
    shadow: bool = False  # the limit refuses nothing


@dataclass(frozen=True)
class Peek:
    allowed: bool  # by all
    retry_after_ms: int
    limits: tuple[State, ...]


@dataclass(frozen=True)
class Outlook:
    """When the cost of a query is admitted."""

    admitted: Admission
    delay_ms: int
    remaining: int
    full_after_ms: int
    credits: int
    source: Source
    after_ms: int | None = None  # with Now and Later
    reason: Reason | None = None
    store_age_ms: int | None = None
    unread: str | None = None
    shared: bool = False
    shadow: bool = False


@dataclass(frozen=True)
class Forecast:
    admitted: Admission  # by all
    limits: tuple[Outlook, ...]
    after_ms: int | None = None


_NAMES = {
    "resetAfterMs": "reset_after_ms",
    "retryAfterMs": "retry_after_ms",
    "delayMs": "delay_ms",
    "afterMs": "after_ms",
    "fullAfterMs": "full_after_ms",
    "storeAgeMs": "store_age_ms",
}


def _read(kind: type, answer: dict[str, Any]) -> Any:
    """Returns an answer as a value of kind. Fields that a later sidecar adds are left out."""
    known = {_NAMES.get(name, name): value for name, value in answer.items()}
    return kind(**{name: known[name] for name in kind.__dataclass_fields__ if name in known})


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path, self._timeout = path, timeout

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._timeout)
        self.sock.connect(self._path)


class Client:
    """Asks a sidecar, by a connection for each call, so threads may share it.

    The url is http://HOST:PORT, or unix:// and the path of a socket.

    It retries nothing: a check that was counted would be counted twice.
    """

    def __init__(self, url: str = DEFAULT_URL, timeout: float = 2.0) -> None:
        self._url, self._timeout = urlsplit(url), timeout

    def check(self, query: Query) -> Decision:
        """Decides a request, and counts it. A refusal is a Decision; an exception decides nothing."""
        return _read(Decision, self._ask("/v1/check", query._body()))

    def peek(self, *queries: Query) -> Peek:
        """Says what is left for up to 16 queries, and takes nothing."""
        answer = self._ask("/v1/peek", {"limits": [q._body() for q in queries]})
        answer["limits"] = tuple(_read(State, one) for one in answer["limits"])
        return _read(Peek, answer)

    def forecast(self, *queries: Query) -> Forecast:
        """Says when the costs of up to 16 queries will be admitted, and takes nothing."""
        answer = self._ask("/v1/forecast", {"limits": [q._body() for q in queries]})
        answer["limits"] = tuple(_read(Outlook, one) for one in answer["limits"])
        return _read(Forecast, answer)

    def _connection(self) -> http.client.HTTPConnection:
        if self._url.scheme == "unix":
            return _SocketConnection(self._url.path, self._timeout)
        return http.client.HTTPConnection(self._url.netloc, timeout=self._timeout)

    def _ask(self, path: str, question: dict[str, Any]) -> dict[str, Any]:
        connection = self._connection()
        try:
            connection.request("POST", path, json.dumps(question), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status in (200, 429):
            return json.loads(text)
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {}
        raise CheckError(response.status, problem.get("title", response.reason), problem.get("detail", "the sidecar gives no reason"))
