"""The ways of running a handler once; each file is one."""
