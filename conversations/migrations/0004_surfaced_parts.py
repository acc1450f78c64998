from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0003_forgotten_passages")]

    operations = [
        migrations.AddField(
            model_name="surfacedmemory",
            name="parts",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Path, phrase and what the score is made of.",
            ),
        ),
    ]
