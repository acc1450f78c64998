"""Pages of people and things, and of how memories hang together.

Every action is a form that works without script; what cannot be taken back at a glance asks first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory import causality, drawing, entities, graph_selectors, selectors, services
from memory.causality import CausalNode
from memory.constants import PAGE_SIZE
from memory.graph_forms import (
    CAUSE_WORDS,
    CONSEQUENCE_WORDS,
    LINK_WORDS,
    LINK_WORDS_BACK,
    BackForm,
    DecideForm,
    EntityFilterForm,
    EntityForm,
    LinkForm,
    MergeForm,
)
from memory.models import Entity, Memory, MemoryLink
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.accounts.types import SignedInRequest
from mira_site.errors import NotFound, RequestError

CANDIDATES = 12  # offered to merge or link with
MEMORIES_SHOWN = 100  # of one entity
DRAWN_DEPTH = 2
CONFIRMED: Mapping[str, str] = {
    MemoryLink.Type.SUPERSEDES: "Noted: the older memory is past from now on.",
    MemoryLink.Type.CONFLICTS: "Noted: I will ask you which of the two is right.",
}


@require_GET
@login_required
def entities_page(request: SignedInRequest) -> HttpResponse:
    """What memories mention, the most mentioned first."""
    asked = EntityFilterForm(request.GET).asked()
    found = graph_selectors.entities(request.user, q=asked["q"], entity_type=asked["type"])
    offset = (asked["page"] - 1) * PAGE_SIZE
    rows = graph_selectors.most_mentioned(request.user, found, limit=PAGE_SIZE + 1, offset=offset)
    kept = {name: asked[name] for name in ("q", "type") if asked[name]}
    return _render(
        request,
        "memory/entities.html",
        {
            "rows": graph_selectors.listed(request.user, rows[:PAGE_SIZE]),
            "kinds": Entity.Type.choices,
            "asked": asked,
            "kept_query": urlencode({"q": asked["q"]}) if asked["q"] else "",
            "next_query": urlencode({**kept, "page": asked["page"] + 1})
            if len(rows) > PAGE_SIZE
            else "",
            "previous_query": urlencode({**kept, "page": asked["page"] - 1})
            if asked["page"] > 1
            else "",
            "open_questions": graph_selectors.proposals(request.user).count(),
        },
    )


@require_GET
@login_required
def entity_page(request: SignedInRequest, entity_id: UUID) -> HttpResponse:
    """One of them with its memories and its other names; another name leads to the whole."""
    entity = _entity(request, entity_id)
    if entity.canonical_id is not None:
        return redirect("memory_entity", entity.canonical_id)
    return _entity_page(request, entity, EntityForm(initial=_initial(entity)))


@require_POST
@login_required
def edit(request: SignedInRequest, entity_id: UUID) -> HttpResponse:
    entity = _entity(request, entity_id)
    form = EntityForm(request.POST, initial=_initial(entity))
    if not form.is_valid():
        return _entity_page(request, entity, form, status=400)
    try:
        entities.edit(
            user=request.user, entity_id=entity_id, at=timezone.now(), **form.cleaned_data
        )
    except RequestError as error:
        form.add_error("name", str(error))
        return _entity_page(request, entity, form, status=error.status)
    messages.success(request, "Changed.")
    return redirect("memory_entity", entity_id)


@require_http_methods(["GET", "POST"])
@login_required
def merge(request: SignedInRequest, entity_id: UUID) -> HttpResponse:
    """Choose what else is this, and which name stays; then it is one."""
    entity = _entity(request, entity_id)
    asked = EntityFilterForm(request.GET).asked()
    form = MergeForm(request.POST or None, initial={"keep": "this"})
    status = 200
    if request.method == "POST":
        try:
            if form.is_valid():
                pair = (entity_id, form.cleaned_data["other"])
                into = pair[form.cleaned_data["keep"] == "other"]
                merged = entities.merge(user=request.user, ids=pair, into=into, at=timezone.now())
                messages.success(request, "They are one now. You can separate them again.")
                return redirect("memory_entity", merged.root.id)
            status = 400
        except RequestError as error:
            form.add_error(None, str(error))
            status = error.status
    found = graph_selectors.entities(request.user, q=asked["q"]).exclude(id=entity.root_id)
    offered = graph_selectors.most_mentioned(request.user, found, limit=CANDIDATES, offset=0)
    context = {
        "entity": entity,
        "form": form,
        "q": asked["q"],
        "rows": graph_selectors.listed(request.user, offered),
    }
    return _render(request, "memory/entities_merge.html", context, status=status)


@require_http_methods(["GET", "POST"])
@login_required
def unmerge(request: SignedInRequest, entity_id: UUID) -> HttpResponse:
    entity = _entity(request, entity_id)
    if request.method != "POST":
        return _confirm(request, entity, "unmerge")
    apart = entities.unmerge(user=request.user, entity_id=entity_id, at=timezone.now())
    messages.success(request, "They are two again, each with its own memories.")
    return redirect("memory_entity", apart.id)


@require_http_methods(["GET", "POST"])
@login_required
def forget(request: SignedInRequest, entity_id: UUID) -> HttpResponse:
    entity = _entity(request, entity_id)
    if request.method != "POST":
        return _confirm(request, entity, "forget")
    entities.forget(user=request.user, entity_id=entity_id)
    messages.success(request, "Forgotten. The memories are still there.")
    return redirect("memory_entities")


@require_GET
@login_required
def proposals_page(request: SignedInRequest) -> HttpResponse:
    """Are these the same?"""
    found = list(graph_selectors.proposals(request.user)[:PAGE_SIZE])
    sides = graph_selectors.listed(
        request.user, [side for one in found for side in (one.first, one.second)]
    )
    pairs = list(zip(found, sides[::2], sides[1::2], strict=True))
    return _render(request, "memory/entities_same.html", {"pairs": pairs})


@require_POST
@login_required
def decide(request: SignedInRequest, proposal_id: UUID) -> HttpResponse:
    form = DecideForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Say yes or no.")
        return redirect("memory_proposals")
    same = form.cleaned_data["same"] == "yes"
    try:
        entities.decide(user=request.user, proposal_id=proposal_id, same=same, at=timezone.now())
    except NotFound as error:
        raise Http404(str(error)) from error
    except RequestError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "They are one now." if same else "I will not ask again.")
    return redirect("memory_proposals")


@require_GET
@login_required
def graph_page(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """The memories around one, drawn and told."""
    memory = _memory(request, memory_id)
    return _render(
        request,
        "memory/memory_graph.html",
        {"memory": memory, **graph_context(request.user, memory_id)},
    )


@require_http_methods(["GET", "POST"])
@login_required
def link(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Look for another memory, and say how this one bears on it."""
    memory = _memory(request, memory_id)
    q = request.GET.get("q", "").strip()[:300]
    form = LinkForm(request.POST or None)
    status = 200
    if request.method == "POST":
        try:
            if form.is_valid():
                given = form.cleaned_data
                services.link(
                    user=request.user,
                    source_id=memory_id,
                    target_id=given.pop("target"),
                    author=MemoryLink.Author.PERSON,
                    at=timezone.now(),
                    **given,
                )
                messages.success(request, "Linked.")
                return redirect("memory", memory_id)
            status = 400
        except RequestError as error:
            form.add_error(None, str(error))
            status = error.status
    found = selectors.memories(request.user, q=q).exclude(id=memory_id)[:CANDIDATES]
    context = {"memory": memory, "form": form, "q": q, "found": found}
    return _render(request, "memory/memory_link.html", context, status=status)


@require_POST
@login_required
def unlink(request: SignedInRequest, memory_id: UUID, target_id: UUID) -> HttpResponse:
    """Take a link away and go back to the end it was seen from."""
    try:
        services.unlink(
            user=request.user, source_id=memory_id, target_id=target_id, at=timezone.now()
        )
    except NotFound as error:
        raise Http404(str(error)) from error
    messages.success(request, "The link is gone. Both memories are still there.")
    return redirect("memory", target_id if "inward" in request.POST else memory_id)


@require_POST
@login_required
def confirm_link(request: SignedInRequest, memory_id: UUID, link_id: UUID) -> HttpResponse:
    """The person says that a link is so; then back to where it was seen."""
    try:
        confirmed = services.confirm_link(
            user=request.user, memory_id=memory_id, link_id=link_id, at=timezone.now()
        )
    except NotFound as error:
        raise Http404(str(error)) from error
    except RequestError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, CONFIRMED.get(confirmed.link_type, "Noted: it is so."))
    return _back(request, memory_id)


@require_POST
@login_required
def remove_link(request: SignedInRequest, memory_id: UUID, link_id: UUID) -> HttpResponse:
    """Take a link of a chain away and go back to where it was seen."""
    try:
        services.remove_link(
            user=request.user, memory_id=memory_id, link_id=link_id, at=timezone.now()
        )
    except NotFound as error:
        raise Http404(str(error)) from error
    messages.success(request, "The link is gone. Both memories are still there.")
    return _back(request, memory_id)


def _back(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """To the memory whose page the form stood on: the link's own unless the form names one."""
    form = BackForm(request.POST)
    return redirect("memory", (form.is_valid() and form.cleaned_data["back"]) or memory_id)


def graph_context(user: User, memory_id: UUID) -> dict[str, Any]:
    """What `partials/_graph.html` shows of a memory: links, mentions, and the picture."""
    now = timezone.now()
    around = graph_selectors.around(user, [memory_id], now=now)[memory_id]
    graph = graph_selectors.graph(user, memory_id, depth=DRAWN_DEPTH, now=now)
    words = {True: LINK_WORDS, False: LINK_WORDS_BACK}
    chain = causality.chain(user, memory_id, include_consequences=True, now=now)
    told = {node.link_id for node in (*chain.causes, *chain.consequences)}
    return {
        "chains": [
            {"name": name, "title": title, "rows": _rows(nodes, words_of)}
            for name, title, nodes, words_of in (
                ("causes", "What led to it", chain.causes, CAUSE_WORDS),
                ("consequences", "What came of it", chain.consequences, CONSEQUENCE_WORDS),
            )
            if nodes
        ],
        "mentions": around.mentions,
        "linked": [
            {"link": one, "words": words[one.outward][MemoryLink.Type(one.link_type)]}
            for one in around.links
            if one.id not in told
        ],
        "picture": _picture(graph),
    }


def _rows(
    nodes: Sequence[CausalNode], words: Mapping[MemoryLink.Type, str]
) -> list[dict[str, Any]]:
    """Each memory under the one it hangs on, with what it is to that one."""
    under: dict[UUID, list[CausalNode]] = {}
    own = {node.id for node in nodes}
    for node in nodes:
        under.setdefault(node.via_id, []).append(node)
    rows: list[dict[str, Any]] = []
    waiting = [node for node in reversed(nodes) if node.via_id not in own]
    while waiting:
        node = waiting.pop()
        rows.append({"node": node, "words": words[MemoryLink.Type(node.relation)]})
        waiting += reversed(under.get(node.id, []))
    return rows


def _picture(graph: graph_selectors.Graph) -> dict[str, Any] | None:
    """Circles and lines of the graph; None if the memory stands alone."""
    if len(graph.nodes) < 2:
        return None
    depths = {node.id: node.depth for node in graph.nodes}
    edges = [(one.source_id, one.target_id) for one in graph.links]
    places = drawing.layout(depths, edges)
    reach = round(max(depths.values()) * drawing.RING + 2 * drawing.NODE_RADIUS)
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    return {
        "box": f"{-reach} {-reach} {2 * reach} {2 * reach}",
        "radius": drawing.NODE_RADIUS,
        "lines": [
            {
                "at": drawing.line(places[one.source_id], places[one.target_id]),
                "link_type": one.link_type,
                "source": numbers[one.source_id],
                "target": numbers[one.target_id],
                "words": LINK_WORDS[MemoryLink.Type(one.link_type)],
            }
            for one in graph.links
        ],
        "nodes": [
            {"node": node, "at": places[node.id], "number": numbers[node.id]}
            for node in graph.nodes
        ],
        "is_cut": graph.is_cut,
    }


def _entity_page(
    request: SignedInRequest, entity: Entity, form: EntityForm, *, status: int = 200
) -> HttpResponse:
    (listed,) = graph_selectors.listed(request.user, [entity])
    found = graph_selectors.memories_of(request.user, entity.id).prefetch_related("sources")
    context = {"row": listed, "entity": entity, "form": form, "found": found[:MEMORIES_SHOWN]}
    return _render(request, "memory/entity.html", context, status=status)


def _initial(entity: Entity) -> dict[str, str]:
    return {"name": entity.name, "entity_type": entity.entity_type}


def _confirm(request: SignedInRequest, entity: Entity, asked: str) -> HttpResponse:
    return _render(request, "memory/entities_confirm.html", {"entity": entity, "asked": asked})


def _entity(request: SignedInRequest, entity_id: UUID) -> Entity:
    try:
        return graph_selectors.entity(request.user, entity_id)
    except NotFound as error:
        raise Http404(str(error)) from error


def _memory(request: SignedInRequest, memory_id: UUID) -> Memory:
    try:
        return selectors.memory(request.user, memory_id)
    except NotFound as error:
        raise Http404(str(error)) from error


def _render(
    request: SignedInRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """With dates as the person's own clock shows them."""
    with timezone.override(accounts.zone(request.user)):
        return render(request, template, {**context, "now": timezone.now()}, status=status)
