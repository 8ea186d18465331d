"""What Redrives do with the dead letters of one consumer."""

from redrive_dashboards.expressions import NONE_OF_EACH, none_named, rate, seen
from redrive_dashboards.layout import Section
from redrive_dashboards.panels import BLUE, GREEN, ORANGE, RED, Curves, Query

REDRIVES = Section(
    "Redrives",
    (
        Curves(
            "Put back and deleted",
            "Dead letters that Redrives move, each second; what the command line moves is not in it. If as many die at "
            "the same time, what they died of is not mended: set spec.paused of the Redrive.",
            (
                Query(
                    f"{rate('redrive_redriven_total', by='action')} or on () {none_named('action', NONE_OF_EACH)}",
                    "{{action}}",
                ),
            ),
            unit="mps",
            colours={"Requeue": GREEN, "Delete": RED},
            width=12,
        ),
        Curves(
            "Redrives that have not ended",
            "One works at a time, the others wait for it. Blocked: `kubectl get redrives -n <namespace> -o wide` says "
            "by what. A Redrive whose canaries died has ended, and its letters wait as before.",
            (
                Query(
                    f"{seen('redrive_redrives', by='namespace, consumer, state')} "
                    f"or on (namespace, consumer) {none_named('state', NONE_OF_EACH)}",
                    "{{state}}",
                ),
            ),
            stacked=True,
            colours={"working": GREEN, "waiting": BLUE, "paused": ORANGE, "blocked": RED},
            width=12,
        ),
    ),
)
