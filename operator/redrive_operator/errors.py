"""Every error that the operator itself raises, as one tree. The broker's are in `redrive.errors`.

OperatorError
├── SettingsError       a flag or an environment variable that cannot be used
└── KubeError           what the API server did, or did not do
    ├── KubeUnavailable     nobody answered in time, or it is overloaded; trying again can help
    ├── KubeRefused         the operator may not do this: its role lacks something, or a policy or quota refuses it
    ├── KubeInvalid         the API server does not take what was asked for; an edit of the object can help
    ├── KubeConflict        somebody else changed it in the meantime
    └── NameTaken           an object of that name exists and is not ours

The text tells a person what to change, and never holds a secret.
"""


class OperatorError(Exception):
    """The root: whoever catches it catches all of ours, and nothing else."""


class SettingsError(OperatorError):
    """A flag or an environment variable that cannot be used, and what to change about it."""


class KubeError(OperatorError):
    """What the API server did, or did not do."""


class KubeUnavailable(KubeError):
    """Nobody answered in time, or the API server asks us to come back later."""


class KubeRefused(KubeError):
    """Forbidden: by the operator's role, by a quota, by admission, or because the namespace is being deleted."""


class KubeInvalid(KubeError):
    """The API server does not take what was asked for, and says why."""


class KubeConflict(KubeError):
    """Somebody else changed the object in the meantime."""


class NameTaken(KubeError):
    """An object of that name exists already, and another controls it."""
