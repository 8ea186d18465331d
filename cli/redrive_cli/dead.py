"""`redrive dead`: what died, looked at, counted, put back, deleted, saved. Each command is in the file of its kind."""

from redrive_cli.dead_files import export, import_letters
from redrive_cli.dead_looking import count_groups, list_letters, show
from redrive_cli.dead_moving import delete, requeue
from redrive_cli.flat_options import flattened
from redrive_cli.plain_help import Commands

app = Commands(no_args_is_help=True, help="Dead letters: list, show, groups, requeue, delete, export, import.")

app.command("list")(flattened(list_letters))
app.command("show")(flattened(show))
app.command("groups")(flattened(count_groups))
app.command("requeue")(flattened(requeue))
app.command("delete")(flattened(delete))
app.command("export")(flattened(export))
app.command("import")(flattened(import_letters))
