"""Keeping engines in line: every engine holds what is in service, on trial, and the way back.

Called every second. An engine that restarted comes back empty; it is filled again here.
"""

import logging
from collections import defaultdict
from datetime import timedelta
from functools import lru_cache

import httpx
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.events import publish
from apps.core.models import Project
from apps.core.permissions import system_actor
from apps.core.services import alert_raise, alerts_resolve
from apps.versions.models import Deployment, ModelVersion
from apps.versions.selectors import editions_without_engine, engines_without, versions_to_keep_loaded
from apps.versions.services.deployments import engines_register
from artifacts import ArtifactMissing, get_store

logger = logging.getLogger(__name__)

LOOK_TIMEOUT = httpx.Timeout(2.0, connect=1.0)
LOAD_TIMEOUT = httpx.Timeout(30.0, connect=1.0)
# A restart takes a moment; only one that lasts is a person's business.
DOWN_GRACE = timedelta(seconds=5)
CHECKED_EVERY = timedelta(seconds=10)


def engines_reconcile() -> int:
    """Look at every engine, load what is missing, report; returns how many adapters were loaded."""
    projects = list(Project.objects.filter(base_models__isnull=False).distinct())
    loaded = 0
    by_address: dict[str, list[Deployment]] = defaultdict(list)
    wanted: dict[int, list[ModelVersion]] = {}
    for project in projects:
        wanted[project.pk] = versions_to_keep_loaded(project)
        for row in engines_register(project=project, by=system_actor(project)):
            row.project = project
            by_address[row.base_url].append(row)
    http = _client()
    for address, rows in by_address.items():
        models = _models(http, address)
        for row in rows:
            problems: list[str] = []
            if models is not None:
                loaded += _fill(http, row, wanted[row.project_id], models, problems)
            _record(row, models)
            _report(row, models is not None, problems)
    return loaded


def version_load(version: ModelVersion) -> list[str]:
    """Load ``version`` on every engine of its project that lacks it; returns what stands in the way."""
    project = version.project
    problems = [f"No engine serves the {edition} edition." for edition in editions_without_engine(project)]
    http = _client()
    for row in engines_without(version):
        row.project = project
        models = _models(http, row.base_url)
        if models is None:
            problems.append(f"{row.name} does not answer.")
            continue
        _fill(http, row, [version], models, problems)
        if version.engine_model not in models and not version.adapter_name:
            problems.append(f"{row.name} does not serve the base “{version.engine_model}”.")
        _record(row, models)
    return problems


@lru_cache(maxsize=1)
def _client() -> httpx.Client:
    """One client a process: making one costs tens of milliseconds. Connections are not kept, so that
    an engine that restarted is not taken for one that broke off."""
    return httpx.Client(timeout=LOOK_TIMEOUT, limits=httpx.Limits(max_keepalive_connections=0))


def _models(http: httpx.Client, address: str) -> list[str] | None:
    """Names that the engine serves now; None while it does not answer."""
    try:
        if http.get(f"{address}/health").status_code != 200:
            return None
        answer = http.get(f"{address}/v1/models")
        return [str(card["id"]) for card in answer.json()["data"]] if answer.status_code == 200 else None
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None


def _fill(
    http: httpx.Client, row: Deployment, wanted: list[ModelVersion], models: list[str], problems: list[str]
) -> int:
    """Load what is missing and add it to ``models``; what cannot be loaded goes to ``problems``."""
    missing = [version for version in wanted if version.adapter_name and version.adapter_name not in models]
    lost = [version.number for version in missing if version.adapter_name in row.loaded]
    if lost:
        alert_raise(
            project=row.project,
            key=f"engine-restarted:{row.pk}",
            title=f"{row.name} restarted without its adapters",
            detail=f"It held {', '.join(lost)} before; loading again.",
            url="/versions/endpoints/",
        )
    count = 0
    for version in missing:
        problem = _load(http, row, version, models)
        if problem:
            problems.append(problem)
        else:
            models.append(version.adapter_name)
            count += 1
            publish(
                project=row.project,
                topic=version.lineage_key,
                kind="AdapterLoaded",
                deployment=row.pk,
                version=version.number,
            )
    return count


def _load(http: httpx.Client, row: Deployment, version: ModelVersion, models: list[str]) -> str:
    """Empty when the engine holds the adapter now, else a sentence that says why it does not."""
    if version.base.engine_name not in models:
        return f"{version} needs the base “{version.base.engine_name}”, which {row.name} does not serve."
    try:
        folder = get_store().materialize(version.adapter_digest, settings.ADAPTERS_DIR / version.adapter_name)
    except ArtifactMissing:
        return f"The adapter of {version} is missing from the artifact store or damaged."
    try:
        answer = http.post(
            f"{row.base_url}/v1/load_lora_adapter",
            json={"lora_name": version.adapter_name, "lora_path": str(folder)},
            timeout=LOAD_TIMEOUT,
        )
    except httpx.HTTPError as error:
        return f"{row.name} broke off while loading {version} ({type(error).__name__})."
    # A second worker may have been faster: then the name is there although this call was refused.
    if answer.status_code == 200 or version.adapter_name in (_models(http, row.base_url) or []):
        logger.info("adapter loaded deployment=%s version=%s", row.pk, version.pk)
        return ""
    return f"{row.name} refused the adapter of {version} (status {answer.status_code})."


def _record(row: Deployment, models: list[str] | None) -> None:
    """Write only what is news, so that a quiet installation writes almost nothing."""
    now = timezone.now()
    healthy = models is not None
    before = (row.healthy, row.loaded)
    stale = row.checked_at is None or now - row.checked_at > CHECKED_EVERY
    if healthy != row.healthy:
        row.healthy, row.healthy_changed_at = healthy, now
    if models is not None:
        row.loaded = models
    changed = before != (row.healthy, row.loaded)
    if not (changed or stale):
        return  # before a transaction: on SQLite that takes the one write lock
    with transaction.atomic():
        row.checked_at = now
        row.save(update_fields=["healthy", "healthy_changed_at", "loaded", "checked_at"])
        if changed:
            publish(
                project=row.project, topic=f"versions.engine:{row.pk}", kind="EngineChanged", healthy=healthy
            )


def _report(row: Deployment, healthy: bool, problems: list[str]) -> None:
    """Raise or resolve this engine's alerts."""
    down_key, restarted_key, load_key = (f"engine-{what}:{row.pk}" for what in ("down", "restarted", "load"))
    if healthy:
        over = [down_key] if problems else [down_key, restarted_key, load_key]
        alerts_resolve(project=row.project, keys=over)
    elif row.healthy_changed_at is not None and timezone.now() - row.healthy_changed_at > DOWN_GRACE:
        alert_raise(
            project=row.project,
            key=down_key,
            level="fail",
            title=f"{row.name} does not answer",
            detail=f"Nothing at {row.base_url} since {row.healthy_changed_at:%H:%M:%S} UTC.",
            url="/versions/endpoints/",
        )
    if problems:
        alert_raise(
            project=row.project,
            key=load_key,
            level="fail",
            title=f"{row.name} lacks an adapter",
            detail=" ".join(problems),
            url="/versions/endpoints/",
        )
