"""The pages for whoever is called, and what they tell that person to type."""

import re
import shlex

from redrive_testbed.places import REPOSITORY

RUNBOOKS = REPOSITORY / "docs" / "runbooks"
INDEX = RUNBOOKS / "README.md"
ALARMS_PAGE = REPOSITORY / "docs" / "alarms.md"
PAGES = sorted(page for page in RUNBOOKS.glob("*.md") if page != INDEX)
ALL_PAGES = [*PAGES, INDEX, ALARMS_PAGE]

# Programs that a page may tell somebody to run, and of those with commands, the ones that are used.
PROGRAMS = {
    "kubectl": {"describe", "get", "logs", "patch", "rollout", "scale"},
    "rabbitmqctl": {
        "add_vhost",
        "cluster_status",
        "eval",
        "list_consumers",
        "list_permissions",
        "list_queues",
        "status",
    },
    "rabbitmq-diagnostics": {"check_running"},
    "promtool": {"check"},
    "redrive": {"dead", "doctor", "orphans"},
    "curl": None,
    "grep": None,
    "sed": None,
    "tail": None,
}


def named(page):
    return page.stem


def blocks(page, language):
    """Give the blocks of one language, without what they are indented by."""
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^ *```$", page.read_text())
    return [re.sub(rf"(?m)^{indent}", "", text) for indent, text in found]


def inline_code(page):
    prose = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text())
    return re.findall(r"`([^`\n]+)`", prose)


def commands(page):
    """Give every command of a page: those after a prompt, and those in the text that begin like one."""
    typed = [line[2:] for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]
    told = [code for code in inline_code(page) if code.split()[0] in PROGRAMS and " " in code]
    return [*typed, *told]


def programs(command):
    """Give the words of each program of a pipe. A name that the reader puts in is a word like any other."""
    lexer = shlex.shlex(re.sub(r"<(\w+)>", r"\1", command), posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    words = list(lexer)
    while "|" in words:
        yield words[: words.index("|")]
        words = words[words.index("|") + 1 :]
    yield words


def calls(program):
    """Give what the pages tell somebody to say to a program, each once."""
    found = (tuple(words) for page in ALL_PAGES for command in commands(page) for words in programs(command))
    return sorted({words[1:] for words in found if words[0] == program})


def expressions():
    """Give every expression that the pages tell somebody to ask Prometheus, each once."""
    return sorted({line for page in ALL_PAGES for block in blocks(page, "promql") for line in block.splitlines()})
