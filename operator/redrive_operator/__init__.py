"""Redrive's operator: one `RetryingConsumer`, and the queues, users, pods and status follow."""
