"""Redrive on the command line; one file per command family."""
