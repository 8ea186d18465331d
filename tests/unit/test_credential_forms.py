"""Who looks for a password finds it wherever it stands, also in the Base64 of something longer."""

from base64 import b64encode
from urllib.parse import quote

import pytest
from credential_forms import SHORTEST, find_forms
from hypothesis import given
from hypothesis import strategies as st

PASSWORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST, max_size=24)


@given(before=st.binary(max_size=7), behind=st.binary(max_size=7), password=PASSWORDS)
def test_password_is_found_in_the_base64_of_what_it_is_a_part_of(before, behind, password):
    assert find_forms(b64encode(before + password.encode() + behind).decode(), "till", password)


@given(password=PASSWORDS)
def test_password_is_found_as_it_is_and_in_a_url(password):
    assert find_forms(f"the password {password} is wrong", "till", password)
    assert find_forms(f"amqp://till:{quote(password, safe='')}@h:5672/", "till", password)


@pytest.mark.parametrize("other", ["correct horse battery", b64encode(b"till:somebody-else").decode()])
def test_other_passwords_are_not_taken_for_it(other):
    assert find_forms(other, "till", "tr0ub4dor-and-3") == []
