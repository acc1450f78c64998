"""Rows for tests, where no service makes them."""

from __future__ import annotations

import factory
from django.utils import timezone

from memory.constants import ROOM_OF_TYPE
from memory.duplicates import text_hash
from memory.models import Memory
from memory.quoting import meaning
from mira_site import embeddings
from mira_site.accounts.models import User


class UserFactory(factory.django.DjangoModelFactory):
    """A person with the password `password-of-<username>`."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda number: f"person{number}")
    email = factory.LazyAttribute(lambda person: f"{person.username}@example.org")
    timezone = "UTC"

    @classmethod
    def _create(cls, model_class: type[User], *args: object, **kwargs: object) -> User:
        kwargs.setdefault("password", f"password-of-{kwargs['username']}")
        user: User = model_class.objects.create_user(*args, **kwargs)
        return user


class MemoryFactory(factory.django.DjangoModelFactory):
    """A memory without sources, really embedded. Use it inside its user's scope."""

    class Meta:
        model = Memory

    user = factory.SubFactory(UserFactory)
    text = factory.Sequence(lambda number: f"Fact number {number} about the person.")
    created_at = factory.LazyFunction(timezone.now)
    said_at = factory.SelfAttribute("created_at")
    created_use_day = 1
    text_hash = factory.LazyAttribute(lambda memory: text_hash(memory.text, memory.happens_at))
    embedding = factory.LazyAttribute(lambda memory: embeddings.embed_one(meaning(memory.text)))
    embedding_model = factory.LazyFunction(embeddings.model_id)
    happens_at = None
    memory_type = "fact"
    room = factory.LazyAttribute(lambda memory: ROOM_OF_TYPE[memory.memory_type])
