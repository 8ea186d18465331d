"""Redrive's consumer: what a handler's author imports."""
