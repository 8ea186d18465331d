"""`redrive-operator`: reads the flags, and starts kopf with what they say.

A flag becomes the variable that is named like it, and only then are kopf and the operator imported: which kinds are
watched is decided there, and the client library looks for the kubeconfig when it is imported.
"""

import os
import sys

from redrive_operator import log_lines
from redrive_operator.errors import SettingsError
from redrive_operator.settings import Settings, read_settings


def start() -> None:
    try:
        settings = read_settings(sys.argv[1:], os.environ)
    except SettingsError as error:
        print(f"redrive-operator: {error}", file=sys.stderr)
        sys.exit(2)
    log_lines.configure(settings.log_level)
    if settings.kubeconfig:
        os.environ["KUBECONFIG"] = settings.kubeconfig  # where kopf looks
    os.environ["REDRIVE_WATCH_NAMESPACES"] = ",".join(settings.watch_namespaces)
    _run(settings)


def _run(settings: Settings) -> None:
    import kopf

    from redrive_operator import main  # noqa: F401 - it registers what kopf shall watch

    kopf.run(
        standalone=True,
        clusterwide=not settings.watch_namespaces,
        namespaces=settings.watch_namespaces,
        memo=kopf.Memo(settings=settings),
    )


if __name__ == "__main__":
    start()
