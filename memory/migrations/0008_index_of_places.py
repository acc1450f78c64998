from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # an index that is built while people write cannot be in a transaction

    dependencies = [
        ("memory", "0007_wings_and_rooms"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="memory",
            index=models.Index(fields=["user", "wing", "room"], name="memory_user_wing_room"),
        ),
    ]
