"""The loop of a worker: deliver, run, decide, settle, drain."""
