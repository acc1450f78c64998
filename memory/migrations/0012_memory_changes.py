"""The log of changed memories, and the triggers that write it.

Stored and deleted ones are noted a statement at a time. Changed ones a row at a time, as only
there a trigger can say which columns count: scores are written anew every day and change nothing
that is searched.
"""

import django.db.models.deletion
import memory.models.changes
import uuid

from django.conf import settings
from django.db import migrations, models

from mira_site.isolation import EnableRowSecurity

COLUMNS = (
    "text",
    "embedding",
    "embedding_model",
    "archived_at",
    "quarantined_at",
    "muted_at",
    "expires_at",
    "valid_until",
    "wing",
    "room",
    "source_segment_id",
    "position",
)
NOTED = "INSERT INTO memory_changes (id, user_id, memory_id, transaction, at)"
VALUES = "user_id, {memory}, pg_current_xact_id(), clock_timestamp()"


def function(name, body):
    return f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {body}; RETURN NULL; END $$
    """


def trigger(name, table, event, function):
    rows = "OLD" if event == "DELETE" else "NEW"
    return f"""
        CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION {function}()
    """


FUNCTIONS = {
    "memory_note_memories": f"""
        {NOTED} SELECT gen_random_uuid(), {VALUES.format(memory="id")} FROM changed
    """,  # noqa: S608
    "memory_note_passages": f"""
        {NOTED} SELECT gen_random_uuid(), {VALUES.format(memory="memory_id")}
        FROM (SELECT DISTINCT user_id, memory_id FROM changed) AS once
    """,  # noqa: S608
    "memory_note_memory": f"""
        {NOTED} VALUES (
            gen_random_uuid(), NEW.user_id, NEW.id, pg_current_xact_id(), clock_timestamp()
        )
    """,
}
CHANGED = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in COLUMNS)
TRIGGERS = [
    trigger("memory_inserted", "memory_memories", "INSERT", "memory_note_memories"),
    trigger("memory_deleted", "memory_memories", "DELETE", "memory_note_memories"),
    f"""
        CREATE TRIGGER memory_updated AFTER UPDATE OF {", ".join(COLUMNS)} ON memory_memories
        FOR EACH ROW WHEN ({CHANGED}) EXECUTE FUNCTION memory_note_memory()
    """,
    trigger("passages_inserted", "memory_passages", "INSERT", "memory_note_passages"),
    trigger("passages_updated", "memory_passages", "UPDATE", "memory_note_passages"),
    trigger("passages_deleted", "memory_passages", "DELETE", "memory_note_passages"),
]
MADE = [*(function(name, body) for name, body in FUNCTIONS.items()), *TRIGGERS]
DROPPED = [f"DROP FUNCTION {name}() CASCADE" for name in FUNCTIONS]


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0011_embedding_model"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="MemoryChange",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("memory_id", models.UUIDField()),
                ("transaction", memory.models.changes.TransactionId()),
                ("at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "memory_changes",
                "indexes": [
                    models.Index(fields=["user", "transaction"], name="memory_change_transaction")
                ],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE memory_changes ADD CONSTRAINT memory_change_of_a_person"
            " FOREIGN KEY (user_id) REFERENCES accounts_users (id) ON DELETE CASCADE",
            migrations.RunSQL.noop,
        ),
        EnableRowSecurity("memory_changes"),
        migrations.RunSQL(MADE, DROPPED),
    ]
