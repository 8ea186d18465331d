"""The small trials of every run tell their seed before anything can end them: one that hangs is repeated by it."""

import pytest
from e2e import test_ledger as with_pods
from integration import test_ledger as with_processes


def trial_of(module):
    """Give the one test of a module."""
    [trial] = [value for name, value in vars(module).items() if name.startswith("test_")]
    return trial


class NoBroker:
    """Whoever asks anything of it is at the beginning of a trial."""


def test_trial_with_worker_processes_tells_its_seed_first(tmp_path, capsys):
    trial = trial_of(with_processes)
    with pytest.raises(AttributeError):
        trial(NoBroker(), tmp_path)
    assert capsys.readouterr().out.startswith(f"seed {with_processes.SEED}\n")


def test_trial_with_pods_tells_its_seed_first(tmp_path, capsys):
    def no_broker(release):
        raise LookupError(release)

    trial = trial_of(with_pods)
    with pytest.raises(LookupError):
        trial(None, None, None, no_broker, tmp_path)
    assert capsys.readouterr().out.startswith(f"seed {with_pods.SEED}\n")
