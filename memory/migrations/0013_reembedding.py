"""Memories by the model that embedded them are found at once, and making them anew is work."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # an index that is built while people write cannot be in a transaction

    dependencies = [
        ("memory", "0012_memory_changes"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="memory",
            index=models.Index(fields=["embedding_model", "user"], name="memory_embedding_model"),
        ),
        migrations.AlterField(
            model_name="work",
            name="kind",
            field=models.CharField(
                choices=[
                    ("integration", "Integration"),
                    ("floor", "Floor"),
                    ("entity_merge", "Entity Merge"),
                    ("rescore", "Rescore"),
                    ("reembed", "Reembed"),
                ],
                max_length=14,
            ),
        ),
    ]
