from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0009_token_vectors_alone"),
    ]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="metrics",
            field=models.JSONField(
                blank=True,
                help_text="Figures that a program keeps beside it, as it gave them.",
                null=True,
            ),
        ),
    ]
