"""Operations on entities, on links between memories, and on the graph they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import causality, entities, graph_selectors, services
from memory.constants import PAGE_SIZE, PAGE_SIZE_MAX
from memory.graph_serializers import (
    CausalChainOut,
    CausalChainQuery,
    DecideIn,
    EntityFilters,
    EntitySerializer,
    GraphOut,
    GraphQuery,
    LinkIn,
    LinkWritten,
    MergeIn,
    ProposalOut,
    page_of,
)
from memory.models import Entity, MemoryLink
from mira_site.accounts.models import User
from mira_site.accounts.types import UserRequest

NO_MEMORY = OpenApiResponse(description="There is no such memory, or it is archived.")
NO_ENTITY = OpenApiResponse(description="There is no such entity.")
NO_LINK = OpenApiResponse(description="This memory has no such link.")
SETTLED = OpenApiResponse(description="The two are settled the other way round.")
OTHER_KIND = OpenApiResponse(description="They cannot be of one thing, or the name is taken.")
CURSOR = [
    OpenApiParameter("cursor", str, description="From `next` or `previous`."),
    OpenApiParameter("page_size", int),
]
MEMORIES, ENTITIES = ["memories"], ["entities"]


class _Pages(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX


class EntityPages(_Pages):
    ordering = ("normalised", "id")


class ProposalPages(_Pages):
    ordering = ("-similarity", "created_at", "id")


class Entities(APIView):
    @extend_schema(
        operation_id="entities_list",
        summary="People, places and things that memories mention, by name",
        parameters=[EntityFilters, *CURSOR],
        responses=page_of("EntityPage", EntitySerializer(many=True)),
        tags=ENTITIES,
    )
    def get(self, request: UserRequest) -> Response:
        asked = EntityFilters(data=request.query_params)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        found = graph_selectors.entities(
            request.user, q=given.get("q", ""), entity_type=given.get("type", "")
        )
        paginator = EntityPages()
        page = paginator.paginate_queryset(found, request, view=self) or []
        return paginator.get_paginated_response(_shown_all(request.user, page))


class EntityDetail(APIView):
    @extend_schema(
        operation_id="entities_retrieve",
        summary="One entity with its other names",
        responses={200: EntitySerializer, 404: NO_ENTITY},
        tags=ENTITIES,
    )
    def get(self, request: UserRequest, entity_id: UUID) -> Response:
        return Response(_shown(request.user, entity_id))

    @extend_schema(
        operation_id="entities_update",
        summary="Correct the name or the kind; the earlier name goes on leading to it",
        request=EntitySerializer(partial=True),
        responses={200: EntitySerializer, 404: NO_ENTITY, 409: OTHER_KIND},
        tags=ENTITIES,
    )
    def patch(self, request: UserRequest, entity_id: UUID) -> Response:
        given = EntitySerializer(data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        entities.edit(
            user=request.user, entity_id=entity_id, at=timezone.now(), **given.validated_data
        )
        return Response(_shown(request.user, entity_id))

    @extend_schema(
        operation_id="entities_delete",
        summary="Forget the entity and its other names; the memories stay",
        responses={204: None, 404: NO_ENTITY},
        tags=ENTITIES,
    )
    def delete(self, request: UserRequest, entity_id: UUID) -> Response:
        entities.forget(user=request.user, entity_id=entity_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class EntityMerge(APIView):
    @extend_schema(
        operation_id="entities_merge",
        summary="Say that these are names of one thing",
        request=MergeIn,
        responses={200: EntitySerializer, 404: NO_ENTITY, 409: OTHER_KIND},
        tags=ENTITIES,
    )
    def post(self, request: UserRequest) -> Response:
        given = MergeIn(data=request.data)
        given.is_valid(raise_exception=True)
        merged = entities.merge(user=request.user, at=timezone.now(), **given.validated_data)
        return Response(_shown(request.user, merged.root.id))


class EntityUnmerge(APIView):
    @extend_schema(
        operation_id="entities_unmerge",
        summary="Make it a thing of its own again, with what had been merged into it",
        request=None,
        responses={200: EntitySerializer, 404: NO_ENTITY},
        tags=ENTITIES,
    )
    def post(self, request: UserRequest, entity_id: UUID) -> Response:
        entities.unmerge(user=request.user, entity_id=entity_id, at=timezone.now())
        return Response(_shown(request.user, entity_id))


class Proposals(APIView):
    @extend_schema(
        operation_id="entities_proposals_list",
        summary="Names that may be of one thing, not decided yet",
        parameters=CURSOR,
        responses=page_of("ProposalPage", ProposalOut(many=True)),
        tags=ENTITIES,
    )
    def get(self, request: UserRequest) -> Response:
        paginator = ProposalPages()
        found = graph_selectors.proposals(request.user)
        page = paginator.paginate_queryset(found, request, view=self)
        return paginator.get_paginated_response(ProposalOut(page, many=True).data)


class ProposalDecision(APIView):
    @extend_schema(
        operation_id="entities_proposals_decide",
        summary="Are these the same?",
        request=DecideIn,
        responses={200: ProposalOut, 404: NO_ENTITY, 409: OTHER_KIND},
        tags=ENTITIES,
    )
    def post(self, request: UserRequest, proposal_id: UUID) -> Response:
        given = DecideIn(data=request.data)
        given.is_valid(raise_exception=True)
        decided = entities.decide(
            user=request.user, proposal_id=proposal_id, at=timezone.now(), **given.validated_data
        )
        return Response(ProposalOut(decided).data)


class MemoryLinks(APIView):
    @extend_schema(
        operation_id="memories_links_create",
        summary="Say how this memory bears on another; a second time replaces the first",
        request=LinkIn,
        responses={201: LinkWritten, 404: NO_MEMORY},
        tags=MEMORIES,
    )
    def post(self, request: UserRequest, memory_id: UUID) -> Response:
        given = LinkIn(data=request.data)
        given.is_valid(raise_exception=True)
        link = services.link(
            user=request.user,
            source_id=memory_id,
            target_id=given.validated_data.pop("target"),
            author=MemoryLink.Author.PERSON,
            at=timezone.now(),
            **given.validated_data,
        )
        return Response(LinkWritten(link).data, status=status.HTTP_201_CREATED)


class MemoryLinkDetail(APIView):
    @extend_schema(
        operation_id="memories_links_delete",
        summary="Take a link of this memory away",
        description="Named by its own id, or by the memory that the link leads to from this one.",
        responses={204: None, 404: NO_LINK},
        tags=MEMORIES,
    )
    def delete(self, request: UserRequest, memory_id: UUID, link_id: UUID) -> Response:
        services.remove_link(
            user=request.user, memory_id=memory_id, link_id=link_id, at=timezone.now()
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class MemoryLinkConfirm(APIView):
    @extend_schema(
        operation_id="memories_links_confirm",
        summary="Say that a link of this memory is so; twice changes nothing",
        description="What only a rule said to be replaced becomes past by it.",
        request=None,
        responses={200: LinkWritten, 404: NO_LINK, 409: SETTLED},
        tags=MEMORIES,
    )
    def post(self, request: UserRequest, memory_id: UUID, link_id: UUID) -> Response:
        confirmed = services.confirm_link(
            user=request.user, memory_id=memory_id, link_id=link_id, at=timezone.now()
        )
        return Response(LinkWritten(confirmed).data)


class MemoryCausalChain(APIView):
    @extend_schema(
        operation_id="memories_causal_chain",
        summary="What led to this memory and, where asked for, what came of it",
        parameters=[CausalChainQuery],
        responses={200: CausalChainOut, 404: NO_MEMORY},
        tags=MEMORIES,
    )
    def get(self, request: UserRequest, memory_id: UUID) -> Response:
        asked = CausalChainQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = causality.chain(request.user, memory_id, now=timezone.now(), **asked.validated_data)
        return Response(CausalChainOut(found).data)


class MemoryGraph(APIView):
    @extend_schema(
        operation_id="memories_graph",
        summary="The memories around this one and the links between them",
        parameters=[GraphQuery],
        responses={200: GraphOut, 404: NO_MEMORY},
        tags=MEMORIES,
    )
    def get(self, request: UserRequest, memory_id: UUID) -> Response:
        asked = GraphQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = graph_selectors.graph(
            request.user, memory_id, depth=asked.validated_data["depth"], now=timezone.now()
        )
        return Response(GraphOut(found).data)


def _shown(user: User, entity_id: UUID) -> dict[str, Any]:
    (shown,) = _shown_all(user, [graph_selectors.entity(user, entity_id)])
    return shown


def _shown_all(user: User, found: Sequence[Entity]) -> list[dict[str, Any]]:
    roots = [entity.root_id for entity in found]
    context = {
        "counts": graph_selectors.counts(user, roots),
        "names": graph_selectors.names(user, roots),
    }
    return list(EntitySerializer(found, many=True, context=context).data)
