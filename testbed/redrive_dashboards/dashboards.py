"""Which dashboards there are, and the file of each."""

import json
from pathlib import Path

from redrive_dashboards.consumer import CONSUMER
from redrive_dashboards.layout import Dashboard, build
from redrive_dashboards.overview import OVERVIEW

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "redrive" / "dashboards"

DASHBOARDS = (OVERVIEW, CONSUMER)


def written(dashboard: Dashboard) -> str:
    """The file of a dashboard: sorted, so that a change of one panel is a change of a few lines."""
    return json.dumps(build(dashboard), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def path_of(dashboard: Dashboard) -> Path:
    return CHART / f"{dashboard.uid}.json"
