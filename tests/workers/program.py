"""The scripted handler as a program that is run for each message."""

import json
import os
import sys
from types import SimpleNamespace

from scripted import handle

facts = SimpleNamespace(id=os.environ["REDRIVE_MESSAGE_ID"], attempt=int(os.environ["REDRIVE_ATTEMPT"]))
handle(json.load(sys.stdin), facts)
