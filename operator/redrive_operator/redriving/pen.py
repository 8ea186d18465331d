"""Writes what becomes of a Redrive into its object, and tells the events that follow from it.

Every write names the version that it goes by. Who edits the object meanwhile costs one more look; but if somebody else
has moved its progress, there are two of us, and the one who finds that out stops.
"""

from redrive.spec import Redrive
from redrive_operator.errors import KubeConflict
from redrive_operator.judge import Verdict
from redrive_operator.kube import REDRIVES
from redrive_operator.redriving.book import Book, RedriveEntry, read_redrive_entry
from redrive_operator.redriving.judging import Stance, is_over, judge_redrive
from redrive_operator.redriving.progress import Progress, read_progress
from redrive_operator.status import patch_of
from redrive_operator.subject import Subject
from redrive_operator.tools import Tools

_TRIES = 5


class Gone(Exception):
    """The object is gone, has ended, or somebody else works on it: nothing more is to be done for it."""


class Pen:
    """Writes one Redrive, as it was read when this was made."""

    def __init__(self, tools: Tools, book: Book, entry: RedriveEntry) -> None:
        self._tools = tools
        self._book = book
        self.subject = entry.subject

    def write(self, redrive: Redrive, progress: Progress, stance: Stance, *, counting: bool = False) -> None:
        """Have the status say this; Gone where there is nothing to write it to."""
        for _ in range(_TRIES):
            verdict = judge_redrive(self.subject, redrive, progress, stance, now=self._tools.now(), counting=counting)
            try:
                self._put(verdict)
            except KubeConflict:
                self._look_again()
            else:
                return
        raise KubeConflict(f"the Redrive {self.subject.key} is changed again and again")

    def tell(self, verdict: Verdict) -> None:
        """Write a verdict of one that is not at work; if it has changed meanwhile, it is judged again later."""
        self._put(verdict)

    def _put(self, verdict: Verdict) -> None:
        subject = self.subject
        patch = patch_of(subject.status, verdict.status)
        if patch is not None:
            body = self._tools.kube.patch_status(REDRIVES, subject.key, patch, version=subject.resource_version)
            if body is None:
                raise Gone
            self._take(read_redrive_entry(body))
        for event in verdict.events:
            self._tools.herald.tell(subject, event.type, event.reason, event.message)

    def _take(self, entry: RedriveEntry) -> None:
        self._book.put(entry)
        self.subject = entry.subject

    def _look_again(self) -> None:
        body = self._tools.kube.get(REDRIVES, self.subject.key)
        if body is None:
            raise Gone
        entry = read_redrive_entry(body)
        if not _is_as_left(entry.subject, self.subject):
            raise Gone
        self._take(entry)


def _is_as_left(now: Subject, before: Subject) -> bool:
    """Say whether it is the same object, with the progress that we wrote last."""
    same = now.uid == before.uid and not now.deleting and not is_over(now)
    return same and read_progress(now.status) == read_progress(before.status)
