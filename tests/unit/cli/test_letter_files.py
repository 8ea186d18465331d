"""Files of letters: what cannot be written is one sentence, and nothing of it counts as kept."""

import resource

import pytest
from letter_samples import letter

from redrive_cli.errors import CliError
from redrive_cli.letter_files import LetterFile


@pytest.fixture
def little_room():
    """Let no file become longer than some bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_disk_that_is_full_is_one_sentence(tmp_path, little_room):
    with pytest.raises(CliError, match="cannot be written"), LetterFile(tmp_path / "copy") as file:
        file.keep([letter(body=b"x" * 3000)])


def test_disk_that_is_full_at_the_end_is_one_sentence(tmp_path, little_room):
    with pytest.raises(CliError, match="cannot be written"), LetterFile(tmp_path / "copy") as file:
        file.write(letter(body=b"x" * 3000))
