from django.apps import AppConfig


class MiraSiteConfig(AppConfig):
    name = "mira_site"

    def ready(self) -> None:
        """Make our Celery app the current one, wherever a task is sent from."""
        import mira_site.celery
        import mira_site.checks  # noqa: F401 (settings must be loaded first)
