"""Addresses of this app: pages, and operations under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from memory import api as operations
from memory import (
    feedback_api,
    graph_api,
    graph_views,
    merge_api,
    places_api,
    recall_views,
    truth_api,
    upkeep_views,
    views,
)

pages: list[URLPattern | URLResolver] = [
    path("memories/", views.memories, name="memories"),
    path("memories/recall/", recall_views.recall, name="memory_recall"),
    path("memories/entities/", graph_views.entities_page, name="memory_entities"),
    path("memories/entities/same/", graph_views.proposals_page, name="memory_proposals"),
    path(
        "memories/entities/same/<uuid:proposal_id>/",
        graph_views.decide,
        name="memory_proposal",
    ),
    path("memories/entities/<uuid:entity_id>/", graph_views.entity_page, name="memory_entity"),
    path("memories/entities/<uuid:entity_id>/edit/", graph_views.edit, name="memory_entity_edit"),
    path(
        "memories/entities/<uuid:entity_id>/merge/", graph_views.merge, name="memory_entity_merge"
    ),
    path(
        "memories/entities/<uuid:entity_id>/unmerge/",
        graph_views.unmerge,
        name="memory_entity_unmerge",
    ),
    path(
        "memories/entities/<uuid:entity_id>/forget/",
        graph_views.forget,
        name="memory_entity_forget",
    ),
    path("memories/questions/", upkeep_views.questions, name="memory_questions"),
    path("memories/questions/<uuid:conflict_id>/", upkeep_views.resolve, name="memory_question"),
    path("memories/held-back/", upkeep_views.held_back, name="memory_held_back"),
    path("memories/<uuid:memory_id>/release/", upkeep_views.release, name="memory_release"),
    path("memories/faded/", upkeep_views.faded, name="memory_faded"),
    path("memories/merged/", upkeep_views.merged, name="memory_merged"),
    path("memories/merged/<uuid:merge_id>/undo/", upkeep_views.undo, name="memory_merge_undo"),
    path("memories/forgotten/", upkeep_views.forgotten, name="memory_forgotten"),
    path("memories/<uuid:memory_id>/feedback/", upkeep_views.judge, name="memory_judge"),
    path(
        "memories/<uuid:memory_id>/feedback/undo/",
        upkeep_views.take_back,
        name="memory_take_back",
    ),
    path("memories/<uuid:memory_id>/graph/", graph_views.graph_page, name="memory_graph"),
    path("memories/<uuid:memory_id>/link/", graph_views.link, name="memory_link"),
    path(
        "memories/<uuid:memory_id>/unlink/<uuid:target_id>/",
        graph_views.unlink,
        name="memory_unlink",
    ),
    path(
        "memories/<uuid:memory_id>/links/<uuid:link_id>/confirm/",
        graph_views.confirm_link,
        name="memory_link_confirm",
    ),
    path(
        "memories/<uuid:memory_id>/links/<uuid:link_id>/remove/",
        graph_views.remove_link,
        name="memory_link_remove",
    ),
    path("memories/<uuid:memory_id>/", views.memory, name="memory"),
    path("memories/<uuid:memory_id>/edit/", views.edit, name="memory_edit"),
    path("memories/<uuid:memory_id>/archive/", views.archive, name="memory_archive"),
    path("memories/<uuid:memory_id>/restore/", views.restore, name="memory_restore"),
    path("memories/<uuid:memory_id>/forget/", views.forget, name="memory_forget"),
]
api: list[URLPattern | URLResolver] = [
    path("memories/", operations.Memories.as_view()),
    path("memories/forgotten/", feedback_api.Receipts.as_view()),
    path("memories/recall/", operations.MemoryRecall.as_view()),
    path("memories/timeline/", places_api.Timeline.as_view()),
    path("memories/wings/", places_api.Wings.as_view()),
    path("memories/status/", places_api.MemoryStatus.as_view()),
    path("memories/archive-aged/", places_api.ArchiveAged.as_view()),
    path("memories/clear/", places_api.Clear.as_view()),
    path("memories/conflicts/", truth_api.Conflicts.as_view()),
    path("memories/conflicts/<uuid:conflict_id>/resolve/", truth_api.ConflictResolve.as_view()),
    path("memories/quarantine/", truth_api.Quarantine.as_view()),
    path("memories/merge/", merge_api.MemoryMerge.as_view()),
    path("memories/merges/", merge_api.Merges.as_view()),
    path("memories/merges/<uuid:merge_id>/undo/", merge_api.MergeUndo.as_view()),
    path("memories/<uuid:memory_id>/", operations.MemoryDetail.as_view()),
    path("memories/<uuid:memory_id>/links/", graph_api.MemoryLinks.as_view()),
    path("memories/<uuid:memory_id>/links/<uuid:link_id>/", graph_api.MemoryLinkDetail.as_view()),
    path(
        "memories/<uuid:memory_id>/links/<uuid:link_id>/confirm/",
        graph_api.MemoryLinkConfirm.as_view(),
    ),
    path("memories/<uuid:memory_id>/causal-chain/", graph_api.MemoryCausalChain.as_view()),
    path("memories/<uuid:memory_id>/graph/", graph_api.MemoryGraph.as_view()),
    path("entities/", graph_api.Entities.as_view()),
    path("entities/merge/", graph_api.EntityMerge.as_view()),
    path("entities/proposals/", graph_api.Proposals.as_view()),
    path("entities/proposals/<uuid:proposal_id>/decide/", graph_api.ProposalDecision.as_view()),
    path("entities/<uuid:entity_id>/", graph_api.EntityDetail.as_view()),
    path("entities/<uuid:entity_id>/unmerge/", graph_api.EntityUnmerge.as_view()),
    path("memories/<uuid:memory_id>/feedback/", feedback_api.MemoryFeedback.as_view()),
    path("memories/<uuid:memory_id>/feedback/undo/", feedback_api.MemoryFeedbackUndo.as_view()),
    path("memories/<uuid:memory_id>/release/", truth_api.MemoryRelease.as_view()),
    path("memories/<uuid:memory_id>/archive/", operations.MemoryArchive.as_view()),
    path("memories/<uuid:memory_id>/restore/", operations.MemoryRestore.as_view()),
]
