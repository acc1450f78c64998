from django.db import migrations, models

from mira_site.isolation import all_users

# Each row gets what a new one is given without a wing and a room (constants.ROOM_OF_TYPE) …
PLACED = """
UPDATE memory_memories
SET wing = CASE WHEN btrim(wing) = '' THEN 'life' ELSE wing END,
    room = CASE
        WHEN btrim(room) <> '' THEN room
        WHEN memory_type = 'decision' THEN 'decisions'
        WHEN memory_type = 'fact' THEN 'facts'
        WHEN memory_type = 'preference' THEN 'preferences'
        WHEN memory_type = 'session_note' THEN 'session'
        WHEN memory_type = 'debug_log' THEN 'debug'
        ELSE memory_type
    END
WHERE btrim(wing) = '' OR btrim(room) = ''
"""
# … and of the spellings of one name the oldest stays: wings first, then rooms within a wing.
ONE_WING = """
UPDATE memory_memories AS m
SET wing = oldest.wing
FROM (
    SELECT DISTINCT ON (user_id, lower(wing)) user_id, lower(wing) AS name, wing
    FROM memory_memories ORDER BY user_id, lower(wing), created_at, id
) AS oldest
WHERE m.user_id = oldest.user_id AND lower(m.wing) = oldest.name AND m.wing <> oldest.wing
"""
ONE_ROOM = """
UPDATE memory_memories AS m
SET room = oldest.room
FROM (
    SELECT DISTINCT ON (user_id, wing, lower(room)) user_id, wing, lower(room) AS name, room
    FROM memory_memories ORDER BY user_id, wing, lower(room), created_at, id
) AS oldest
WHERE m.user_id = oldest.user_id AND m.wing = oldest.wing AND lower(m.room) = oldest.name
  AND m.room <> oldest.room
"""


def fill(apps, schema_editor):
    with all_users("give each memory a wing and a room"):
        for statement in (PLACED, ONE_WING, ONE_ROOM):
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0006_forms_and_causes"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="memory",
            name="wing",
            field=models.CharField(default="life", max_length=100),
        ),
        migrations.AlterField(
            model_name="memory",
            name="room",
            field=models.CharField(default="facts", max_length=100),
        ),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("wing", ""), _negated=True), models.Q(("room", ""), _negated=True)
                ),
                name="memory_has_a_place",
            ),
        ),
    ]
