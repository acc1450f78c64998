"""The words of what was said until now; and no more index that row-level security shuts out.

A block at a time, each in a transaction of its own: begun anew it goes on where it ended.
"""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import connections, migrations
from django.db.models import Max

from mira_site.isolation import all_users


def fill(apps, schema_editor):
    message = apps.get_model("conversations", "Message")
    places = apps.get_model("conversations", "WordPlaces")
    with all_users("fill where words stand in the threads"):
        threads = message.objects.order_by().values_list("user").annotate(Max("position"))
        filled = dict(places.objects.order_by().values_list("user").annotate(Max("block")))
        with connections[schema_editor.connection.alias].cursor() as cursor:
            for user, last in list(threads):
                for block in range(filled.get(user, -1) + 1, (last + 1) // 1024):
                    cursor.execute("SELECT conversations_fill_words(%s, %s)", [user, block])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("conversations", "0011_word_places")]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        RemoveIndexConcurrently(model_name="message", name="message_search"),
    ]
