"""The operator's start: how kopf behaves for Redrive. `kopf run -m redrive_operator.main` imports this.

Every annotation and finalizer that kopf leaves on an object bears Redrive's own name, so that another kopf operator
on the same object never takes ours for its own.
"""

import kopf

DOMAIN = "redrive.dev"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    settings.persistence.finalizer = f"{DOMAIN}/finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=DOMAIN)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=DOMAIN)
    # Redrive writes its own events, deduplicated; kopf would repeat every log line as one.
    settings.posting.enabled = False
