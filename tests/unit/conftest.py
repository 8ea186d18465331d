"""What several unit tests begin with."""

import sys
import types

import pytest

from redrive.handler import load_handler


@pytest.fixture
def load(monkeypatch):
    """Load a function as if a user's module had it."""

    def load(function):
        module = types.ModuleType("users_module")
        module.handle = function
        monkeypatch.setitem(sys.modules, "users_module", module)
        return load_handler("users_module:handle")

    return load
