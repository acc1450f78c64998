from django.apps import AppConfig


class ToolboxConfig(AppConfig):
    name = "toolbox"

    def ready(self) -> None:
        """Every tool is registered before anybody asks for one; a wrong one stops the start."""
        from toolbox import registry

        registry.discover()
