"""Something else in the place of anything, however deep it is in an object."""


def places(value, path=()):
    """List the path of everything in an object, so that a test can put something else there."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def put(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy
