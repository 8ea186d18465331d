"""Raw objects to frozen values: what the API server checks, checked again where there is none.

Every rule and default of the CRDs is repeated here, because `redrive dev` and `redrive explain` read plain files and
because CEL runs in the API server only. Parsing is total: it returns a value or raises SpecError, nothing else.
A field that nobody knows is an error here, named with the closest one that exists; the API server may just drop it.
"""

from redrive.errors import SpecError
from redrive.spec.alarms import Alarms, QueueSizeAlarm, RateAlarm, SizeAlarm
from redrive.spec.connection import BrokerConnection, Tls, parse_connection
from redrive.spec.consumer import Consumer, DeletionPolicy, parse_consumer
from redrive.spec.durations import format_duration, parse_duration
from redrive.spec.queue import Binding, Broker, ConnectionRef, Queue, SecretRef
from redrive.spec.redrive import Canary, HeaderMatch, Redrive, RedriveAction, Selection, parse_redrive
from redrive.spec.scaling import Placement, Scaling
from redrive.spec.worker import CommandRunner, ExitCodes, HttpRunner, PythonMode, PythonRunner, Runner, Worker

__all__ = [
    "Alarms",
    "Binding",
    "Broker",
    "BrokerConnection",
    "Canary",
    "CommandRunner",
    "ConnectionRef",
    "Consumer",
    "DeletionPolicy",
    "ExitCodes",
    "HeaderMatch",
    "HttpRunner",
    "Placement",
    "PythonMode",
    "PythonRunner",
    "Queue",
    "QueueSizeAlarm",
    "RateAlarm",
    "Redrive",
    "RedriveAction",
    "Runner",
    "Scaling",
    "SecretRef",
    "Selection",
    "SizeAlarm",
    "SpecError",
    "Tls",
    "Worker",
    "format_duration",
    "parse_connection",
    "parse_consumer",
    "parse_duration",
    "parse_redrive",
]
