"""changepassword: Django's own, and like on the pages the tokens of the account end with it."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from mira_site.accounts import services
from mira_site.accounts.models import User


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str:
        said = super().handle(*args, **options) or ""
        user = User.objects.get_by_natural_key(options["username"] or getpass.getuser())
        ended = services.revoke_all_tokens(user=user)
        return f"{said}. Of their API tokens, {ended} ended." if ended else said
