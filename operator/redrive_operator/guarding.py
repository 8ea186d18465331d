"""What fails for one consumer costs only that one: it is told, and the consumer is seen to again."""

import logging
from collections.abc import Callable
from typing import Literal

from redrive_operator.errors import KubeError
from redrive_operator.subject import Key

LOGGER = logging.getLogger(__name__)

Failure = Literal["kube-error", "failed"]


def failure_of(key: Key, see_to: Callable[[], None]) -> Failure | None:
    """See to a consumer; say what kind of failure that was, if it was one."""
    try:
        see_to()
    except KubeError as error:
        LOGGER.warning("%s is seen to again: %s", key, error)
        return "kube-error"
    except Exception:
        LOGGER.exception("%s could not be seen to: this is a defect of the operator", key)
        return "failed"
    return None
