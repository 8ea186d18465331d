"""One suite for every broker: what becomes of a message, in memory and on real RabbitMQ.

`tests/unit/test_behaviour.py` runs it on `InMemoryBroker`, `tests/integration/test_behaviour.py` on each release, with
worker processes. A test asks for `stage` and knows nothing of what is behind it.
"""
