"""The Celery app and what beat starts. Each entry expires just under its period, so that a worker
that was away does not find a pile.
"""

from __future__ import annotations

import os
import warnings

from celery import Celery, signals
from celery.exceptions import SecurityWarning
from celery.worker.consumer import Consumer

from mira_site import embeddings, heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mira_site.settings")
# It warns of root because of pickled messages, and only JSON is accepted here.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("mira", include=["mira_site.heartbeat"])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["conversations", "memory", "mira_site.accounts", "mira_site.webhooks"])


BACKGROUND_WARM_AFTER_S = 45.0


@signals.worker_ready.connect
def warm_embeddings(sender: Consumer, **kwargs: object) -> None:
    """Load the embedding model before it is needed: at once for turns, later for the rest.

    Every process that loads it takes a core for seconds; turns shall not wait for the others.
    """
    if "turns" in sender.app.amqp.queues.consume_from:
        embeddings.warm()
    else:
        embeddings.warm(after_s=BACKGROUND_WARM_AFTER_S)


app.conf.beat_schedule = {
    **{
        f"heartbeat-{queue}": {
            "task": "mira_site.heartbeat.leave_sign",
            "schedule": heartbeat.EVERY_S,
            "args": [queue],
            "options": {"expires": heartbeat.EVERY_S - 1, "queue": queue},
        }
        for queue in heartbeat.QUEUES
    },
    "collapse-due-segments": {
        "task": "conversations.tasks.collapse_due_segments",
        "schedule": 300,
        "options": {"expires": 290},
    },
    "delete-unsent-files": {
        "task": "conversations.tasks.delete_unsent_files",
        "schedule": 3600,
        "options": {"expires": 3590},
    },
    "delete-old-records-of-turns": {
        "task": "conversations.tasks.delete_old_records",
        "schedule": 86_400,
        "options": {"expires": 86_390},
    },
    "hand-out-memory-work": {
        "task": "memory.tasks.hand_out_work",
        "schedule": 300,
        "options": {"expires": 290},
    },
    # Hourly, because a machine may be off at any one hour; each person's turn comes once a day.
    "rescore-dates": {
        "task": "memory.tasks.rescore_dates",
        "schedule": 3600,
        "options": {"expires": 3590},
    },
    # Vectors of another model are there after an update of the model only.
    "hand-out-memories-of-another-model": {
        "task": "memory.tasks.hand_out_reembedding",
        "schedule": 3600,
        "options": {"expires": 3590},
    },
    "hand-out-segments-of-another-model": {
        "task": "conversations.tasks.hand_out_reembedding",
        "schedule": 3600,
        "options": {"expires": 3590},
    },
    "sweep-webhooks": {
        "task": "mira_site.webhooks.tasks.sweep",
        "schedule": 10,
        "options": {"expires": 9},
    },
    "delete-old-webhook-deliveries": {
        "task": "mira_site.webhooks.tasks.delete_old",
        "schedule": 3600,
        "options": {"expires": 3590},
    },
    # The time of the last run is kept, so that a machine that was off at that hour catches up.
    "hand-out-aged-memories": {
        "task": "memory.tasks.hand_out_aged",
        "schedule": 86_400,
        "options": {"expires": 86_390},
    },
    "delete-old-changes-of-memories": {
        "task": "memory.tasks.delete_old_changes",
        "schedule": 86_400,
        "options": {"expires": 86_390},
    },
    "lift-veils": {
        "task": "conversations.tasks.lift_veils",
        "schedule": 60,
        "options": {"expires": 59},
    },
    "sweep-turns": {
        "task": "conversations.tasks.sweep_turns",
        "schedule": 15,
        "options": {"expires": 14, "queue": "turns"},
    },
}
