"""What can go wrong in a bench: one part of a run fails or is given up, and the rest of the run goes on without it."""


class Abandoned(Exception):
    """A part of the run that has no figures; the text says why, and is printed beside the figures of the others."""
