"""A program for one message: 0 is done, 3 reject, any other code a failure."""

import json
import os
import sys

order = json.load(sys.stdin)
if order.get("rejected"):
    sys.exit(3)
if order.get("succeeds_on") is None or int(os.environ["REDRIVE_ATTEMPT"]) < order["succeeds_on"]:
    sys.exit("the payment service does not answer")
