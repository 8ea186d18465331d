"""Redrive's consumer: what a handler's author imports."""

from redrive.message import Message
from redrive.signals import Reject, Retry, Snooze

__all__ = ["Message", "Reject", "Retry", "Snooze"]
