"""A real Kubernetes and real RabbitMQ brokers on one Linux machine, for tests and demonstrations of Redrive.

What it starts it ends, by pid; everything it keeps lies in two folders (see `places`), and `down` empties the first.
"""
