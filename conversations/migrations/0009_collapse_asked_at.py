"""A collapse that was wished for while a turn ran."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0008_thread_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="segment",
            name="collapse_asked_at",
            field=models.DateTimeField(
                blank=True,
                help_text="The person wished it wrapped up while MIRA answered; done once she has.",
                null=True,
            ),
        ),
    ]
