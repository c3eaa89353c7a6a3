"""``manage.py bootstrap``: make the first user and the demo project if they are missing."""

import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from apps.loop.bootstrap import installation_bootstrap


class Command(BaseCommand):
    help = "Make the first admin, the demo project, its families and suites. Harmless to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print login and key as JSON")
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date first")
        parser.add_argument("--sandbox-problem", default="", help="why no sandbox can be had here")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["migrate"]:
            call_command("migrate", verbosity=0)
        made = installation_bootstrap(sandbox_problem=options["sandbox_problem"])
        if options["json"]:
            self.stdout.write(json.dumps(made))
        else:
            login = f"{made['username']} / {made['password']}" if made["password"] else made["username"]
            self.stdout.write(f"Project {made['project']}, login {login}")
