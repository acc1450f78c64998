from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_importance_by_person")]

    operations = [
        migrations.AddField(
            model_name="conflict",
            name="kept",
            field=models.CharField(
                blank=True,
                default="",
                help_text="older, newer or both, once settled.",
                max_length=5,
            ),
        ),
    ]
