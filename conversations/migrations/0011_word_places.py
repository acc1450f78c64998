"""Where words stand in the thread, kept by the database itself (ADR 0015).

Whatever changes messages, by whatever way, changes the places of their words in its transaction.
"""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from mira_site.isolation import EnableRowSecurity

# hashtext is what hash indexes rest on, so it outlives upgrades of PostgreSQL.
FILL = """
CREATE FUNCTION conversations_fill_words(owner uuid, number integer) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM conversations_word_places WHERE user_id = owner AND block = number;
    INSERT INTO conversations_word_places (id, user_id, block, bucket, codes)
    SELECT gen_random_uuid(), owner, number, every.bucket, coalesce(found.codes, '')
    FROM generate_series(0, 255) AS every(bucket)
    LEFT JOIN (
        SELECT hash & 255 AS bucket,
               string_agg(int4send(((hash >> 8) & 2097151) << 10 | place), '') AS codes
        FROM (
            SELECT hashtext(word) AS hash, (position & 1023)::integer AS place
            FROM conversations_messages, unnest(tsvector_to_array(search_vector)) AS word
            WHERE user_id = owner AND NOT is_off_record
              AND position BETWEEN number::bigint * 1024 AND number::bigint * 1024 + 1023
        ) AS said
        GROUP BY 1
    ) AS found USING (bucket);
$$
"""

# The thread is locked before a block is looked for: whoever fills one holds it, so that no change
# of a message falls between reading its words and keeping them.
REFILL = """
CREATE FUNCTION conversations_refill_words(owner uuid, number integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM conversations_threads WHERE user_id = owner FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM conversations_word_places
        WHERE user_id = owner AND bucket = 0 AND block = number
    ) THEN
        PERFORM conversations_fill_words(owner, number);
    END IF;
END
$$
"""

# A block is filled with an answer, when nobody waits any more, and one with each, so that a thread
# with many to fill holds nobody up; many rows at once bring as many blocks as they make full.
ADDED = """
CREATE FUNCTION conversations_words_added() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said record;
    following integer;
BEGIN
    FOR said IN
        SELECT user_id, max(position) AS last, min(position) AS first, count(*) AS messages,
               bool_or(role = 'assistant') AS is_answer
        FROM added GROUP BY user_id
    LOOP
        SELECT coalesce(max(block) + 1, 0) INTO following FROM conversations_word_places
        WHERE user_id = said.user_id AND bucket = 0;
        IF said.first < following::bigint * 1024 THEN
            PERFORM conversations_refill_words(user_id, block)
            FROM (
                SELECT DISTINCT user_id, (position / 1024)::integer AS block FROM added
                WHERE user_id = said.user_id AND position < following::bigint * 1024
            ) AS touched;
        END IF;
        CONTINUE WHEN NOT said.is_answer;
        FOR number IN following ..
            least((said.last + 1) / 1024 - 1, following + said.messages / 1024)
        LOOP
            PERFORM FROM conversations_threads WHERE user_id = said.user_id FOR NO KEY UPDATE;
            PERFORM conversations_fill_words(said.user_id, number);
        END LOOP;
    END LOOP;
    RETURN NULL;
END
$$
"""
CHANGED = """
CREATE FUNCTION conversations_words_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM conversations_refill_words(user_id, block)
    FROM (
        SELECT DISTINCT said.user_id, (said.position / 1024)::integer AS block
        FROM before AS was JOIN after AS became USING (id)
        CROSS JOIN LATERAL (
            VALUES (was.user_id, was.position), (became.user_id, became.position)
        ) AS said(user_id, position)
        WHERE (was.text, was.is_off_record, was.position, was.user_id)
            IS DISTINCT FROM (became.text, became.is_off_record, became.position, became.user_id)
    ) AS touched;
    RETURN NULL;
END
$$
"""
DELETED = """
CREATE FUNCTION conversations_words_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM conversations_refill_words(user_id, block)
    FROM (SELECT DISTINCT user_id, (position / 1024)::integer AS block FROM gone) AS touched;
    RETURN NULL;
END
$$
"""
TRIGGERS = [
    """
    CREATE TRIGGER words_added AFTER INSERT ON conversations_messages
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION conversations_words_added()
    """,
    """
    CREATE TRIGGER words_changed AFTER UPDATE ON conversations_messages
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION conversations_words_changed()
    """,
    """
    CREATE TRIGGER words_deleted AFTER DELETE ON conversations_messages
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION conversations_words_deleted()
    """,
]
UNDONE = [
    "DROP TRIGGER words_added ON conversations_messages",
    "DROP TRIGGER words_changed ON conversations_messages",
    "DROP TRIGGER words_deleted ON conversations_messages",
    "DROP FUNCTION conversations_words_added()",
    "DROP FUNCTION conversations_words_changed()",
    "DROP FUNCTION conversations_words_deleted()",
    "DROP FUNCTION conversations_refill_words(uuid, integer)",
    "DROP FUNCTION conversations_fill_words(uuid, integer)",
]


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("conversations", "0010_embedding_model"),
    ]

    operations = [
        migrations.CreateModel(
            name="WordPlaces",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("block", models.PositiveIntegerField()),
                ("bucket", models.PositiveSmallIntegerField()),
                ("codes", models.BinaryField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "places of words",
                "db_table": "conversations_word_places",
            },
        ),
        migrations.AddConstraint(
            model_name="wordplaces",
            constraint=models.UniqueConstraint(
                fields=("user", "bucket", "block"), name="one_row_a_bucket_of_a_block"
            ),
        ),
        EnableRowSecurity("conversations_word_places"),
        migrations.RunSQL(
            sql=[FILL, REFILL, ADDED, CHANGED, DELETED, *TRIGGERS], reverse_sql=UNDONE
        ),
    ]
