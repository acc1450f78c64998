"""What a word piece is was never read: only what it means is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_index_of_places")]

    operations = [migrations.RemoveField(model_name="tokenvectors", name="pieces")]
