from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_entity_keys_and_who_merged")]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="importance_by_person",
            field=models.FloatField(
                blank=True, help_text="What the person said it is; scoring keeps to it.", null=True
            ),
        ),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=models.Q(importance_by_person__gte=0, importance_by_person__lte=1),
                name="memory_importance_by_person_0_1",
            ),
        ),
        migrations.AddIndex(
            model_name="memoryaccess",
            index=models.Index(fields=["user", "memory"], name="memory_access_memory"),
        ),
    ]
