"""What a call cost, in dollars; calls of before are left at nothing."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("llm", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="modelcall",
            name="cost",
            field=models.DecimalField(
                max_digits=12,
                decimal_places=6,
                default=0,
                help_text="Dollars, by mira_site/llm/prices.py.",
            ),
        ),
    ]
