from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "mira_site.webhooks"
    label = "webhooks"
