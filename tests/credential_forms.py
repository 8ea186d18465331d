"""How a password looks where it has no business: as it is, in a URL, and in the Base64 of Secrets and of HTTP."""

from base64 import b64encode
from urllib.parse import quote

SHORTEST = 8  # characters: what is shorter may be anywhere by chance


def forms(user, password):
    """Give what no text may have that shows neither the password nor a login with it."""
    assert user
    assert len(password) >= SHORTEST
    logins = (password, f"{user}:{password}")
    return {password, quote(password, safe=""), *(form for login in logins for form in encoded(login))}


def encoded(text):
    """Give the part of its Base64 that is the same whatever stands before and behind it, for each place of three."""
    data, begins = text.encode(), (0, 2, 3)
    return [b64encode(bytes(lead) + data)[begins[lead] : (lead + len(data)) // 3 * 4].decode() for lead in range(3)]


def find_forms(text, user, password):
    return sorted(form for form in forms(user, password) if form in text)
