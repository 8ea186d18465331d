"""Which of two sights of an object is the later one: watches, lists and the answers to our writes come in any order."""


def is_newer(seen: str, known: str) -> bool:
    """Say whether a version is later than another. They are numbers that grow; one that is none is only different."""
    if seen.isdecimal() and known.isdecimal():
        return int(seen) > int(known)
    return seen != known
