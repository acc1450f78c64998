#!/usr/bin/env python
"""Django's command line."""

import os
import sys

from django.core.management import execute_from_command_line

from mira_site import serving
from mira_site.errors import DependencyError, SettingError

NO_DATABASE = {"check", "collectstatic", "diffsettings", "help", "makemigrations", "spectacular"}


def main() -> int:
    """Run a management command; what the operator can fix ends it with one line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mira_site.settings")
    try:
        if sys.argv[1:] == ["serve"]:
            serving.serve()  # past Django's command line, which would load every app first
        else:
            if needs_database(sys.argv) and serving.database_is_away():
                raise SettingError(
                    "its database does not run. Run ./script/server, or set DATABASE_URL."
                )
            execute_from_command_line(sys.argv)
    except (SettingError, DependencyError) as error:
        sys.stderr.write(f"MIRA cannot start: {error}\n")
        return 2
    return 0


def needs_database(argv: list[str]) -> bool:
    return len(argv) > 1 and argv[1] not in NO_DATABASE and not {"-h", "--help"} & set(argv)


if __name__ == "__main__":
    sys.exit(main())
