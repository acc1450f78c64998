from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "conversations"

    def ready(self) -> None:
        from conversations import forgetting
        from memory import services as memory
        from toolbox import services as toolbox

        toolbox.discover("conversations.tools")
        memory.being_forgotten.connect(forgetting.see_to, dispatch_uid="conversations.forgetting")
