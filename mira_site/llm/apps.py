from django.apps import AppConfig


class LLMConfig(AppConfig):
    name = "mira_site.llm"
    label = "llm"
