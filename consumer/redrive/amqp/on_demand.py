"""A connection that is made when it is first needed: to look after what is as it should be takes none.

What a reading of the broker told already is not asked again by AMQP.
"""

import ssl
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from redrive.amqp.blocking import Amqp
from redrive.elements import Binding, Exchange, Queue
from redrive.endpoints import Endpoint
from redrive.errors import BrokerError
from redrive.reading import Reading


class Declarer(Protocol):
    """What it takes to make and mend a topology. `gone` says that there is no connection any more, or never was."""

    @property
    def version(self) -> str: ...

    @property
    def cluster_name(self) -> str: ...

    @property
    def gone(self) -> bool: ...

    def declare(self, element: Exchange | Queue | Binding) -> None: ...

    def unbind(self, binding: Binding) -> None: ...

    def wait(self, seconds: float) -> None: ...


class OnDemand:
    """Connects when it must, and as `Amqp` does. Use it in one thread, and as a context."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        tls: ssl.SSLContext | None = None,
        name: str = "",
        reading: Reading | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._tls = tls
        self._name = name
        self._reading = reading
        self._amqp: Amqp | None = None
        self._refused = False

    def __enter__(self) -> "OnDemand":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def opened(self) -> bool:
        """Whether a connection was needed; true also when it is closed again."""
        return self._amqp is not None

    @property
    def amqp(self) -> Amqp:
        """The connection, made now if it was not needed before."""
        if self._amqp is None:
            try:
                self._amqp = Amqp(self._endpoints, tls=self._tls, name=self._name)
            except BrokerError:
                self._refused = True
                raise
        return self._amqp

    @property
    def gone(self) -> bool:
        return self._refused if self._amqp is None else self._amqp.gone

    @property
    def version(self) -> str:
        return self.amqp.version if self._reading is None else self._reading.version

    @property
    def cluster_name(self) -> str:
        return self.amqp.cluster_name if self._reading is None else self._reading.cluster_name

    def declare(self, element: Exchange | Queue | Binding) -> None:
        self.amqp.declare(element)

    def unbind(self, binding: Binding) -> None:
        self.amqp.unbind(binding)

    def wait(self, seconds: float) -> None:
        if self._amqp is None:
            time.sleep(seconds)
        else:
            self._amqp.wait(seconds)

    def close(self) -> None:
        if self._amqp is not None:
            self._amqp.close()
