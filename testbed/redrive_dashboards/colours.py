"""What a colour and a threshold mean, the same on every page."""

from redrive_dashboards.panels import BLUE, GREEN, ORANGE, RED, YELLOW, Steps

OUTCOMES = {"done": GREEN, "retry": ORANGE, "snooze": BLUE, "dead": RED}
QUANTILES = {"p50": BLUE, "p95": ORANGE, "p99": ORANGE}
WORKERS = {"wanted": BLUE, "available": GREEN, "without a place": RED}

# The longer a message sleeps, the darker.
BANDS = {
    "up to 2 s": "super-light-blue",
    "up to 30 s": "light-blue",
    "up to 8 min": "blue",
    "up to 2 h": "semi-dark-blue",
    "up to 34 h": "dark-blue",
}

# Three minutes are what RabbitMQ 3.10 may take after a restart; the alarm is about five.
LATE: Steps = ((None, GREEN), (60, YELLOW), (300, RED))

# The watch is renewed, and every broker read, several times a minute.
STALE: Steps = ((None, GREEN), (60, YELLOW), (300, RED))

FAILING: Steps = ((None, GREEN), (0.05, YELLOW), (0.5, RED))
