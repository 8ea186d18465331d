"""`redrive` as a person types it: in a process of its own, with nothing of this machine's but what a test gives it."""

import os
import subprocess
import sys

FOREIGN = ("KUBECONFIG", "REDRIVE_BROKER", "REDRIVE_MANAGEMENT")


def type_command(*words, env=None, stdin=None, within=60, columns=None):
    """Run it to its end; a traceback fails the test, whatever it was about."""
    ours = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    done = subprocess.run(
        [sys.executable, "-m", "redrive_cli", *map(str, words)],
        env={**ours, "HOME": "/nonexistent", **({"COLUMNS": str(columns)} if columns else {}), **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done
