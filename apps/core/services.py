"""Writes of core: users, projects, members, keys, audit, alerts. Each leaves an audit row."""

import secrets
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from apps.core.crypto import key_digest
from apps.core.errors import Conflict, Refused
from apps.core.models import Alert, ApiKey, AuditEvent, Membership, Project, Role, User
from apps.core.permissions import SCOPES, Actor
from apps.core.registries import project_made


class NewKey(NamedTuple):
    """``secret`` is shown once and never stored."""

    key: ApiKey
    secret: str


def audit(*, actor: Actor, action: str, obj: Any = None, reason: str = "", **detail: Any) -> AuditEvent:
    """Record ``action`` (``<entity>.<verb>``). ``detail`` holds ids and numbers, never captured text."""
    return AuditEvent.objects.create(
        project=actor.project,
        actor=actor.name,
        action=action,
        object_type=obj._meta.label_lower if obj is not None else "",
        object_id=str(obj.pk) if obj is not None else "",
        reason=reason,
        detail=detail,
    )


def project_create(*, name: str, owner: User) -> Project:
    """Create a project with ``owner`` as its admin."""
    name = name.strip()
    if not name:
        raise Refused("Give the project a name.", code="name_missing")
    base = slugify(name)[:50] or "project"
    with transaction.atomic():
        slug, suffix = base, 2
        while Project.objects.filter(slug=slug).exists():
            slug, suffix = f"{base}-{suffix}", suffix + 1
        project = Project.objects.create(name=name, slug=slug)
        Membership.objects.create(project=project, user=owner, role=Role.ADMIN)
        actor = Actor(project=project, name=owner.username, user=owner, role=Role.ADMIN)
        audit(actor=actor, action="project.create", obj=project)
        for made in project_made:
            made(project, actor)
    return project


def project_rename(*, project: Project, name: str, by: Actor) -> None:
    if not name.strip():
        raise Refused("Give the project a name.", code="name_missing")
    project.name = name.strip()[:100]
    project.save(update_fields=["name"])
    audit(actor=by, action="project.rename", obj=project)


def membership_add(*, project: Project, username: str, role: str, by: Actor) -> Membership:
    """Add an existing user; raises Refused if unknown, Conflict if already a member."""
    _check_role(role)
    user = User.objects.filter(username=username.strip()).first()
    if user is None:
        raise Refused(f"There is no user “{username}”.", code="user_unknown", status=404)
    try:
        with transaction.atomic():
            membership = Membership.objects.create(project=project, user=user, role=role)
    except IntegrityError:
        raise Conflict(f"{user} is already a member.", code="member_exists") from None
    audit(actor=by, action="membership.add", obj=membership, user=user.username, role=role)
    return membership


class NewAccount(NamedTuple):
    """``password`` is shown once and never stored in clear."""

    membership: Membership
    password: str


def membership_invite(*, project: Project, username: str, role: str, by: Actor) -> NewAccount | None:
    """Add a member, making the account if there is none; None when the account existed."""
    username = username.strip()
    if User.objects.filter(username=username).exists():
        membership_add(project=project, username=username, role=role, by=by)
        return None
    _check_role(role)
    user = User(username=username)
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        raise Refused(" ".join(error.messages), code="username_invalid") from None
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    with transaction.atomic():
        user.save()
        audit(actor=by, action="user.create", obj=user)
        membership = membership_add(project=project, username=username, role=role, by=by)
    return NewAccount(membership, password)


def membership_change(*, membership: Membership, role: str, by: Actor) -> None:
    _check_role(role)
    with transaction.atomic():
        _keep_one_admin(membership, leaving=role != Role.ADMIN)
        membership.role = role
        membership.save(update_fields=["role"])
        audit(actor=by, action="membership.change", obj=membership, user=membership.user.username, role=role)


def membership_remove(*, membership: Membership, by: Actor) -> None:
    with transaction.atomic():
        _keep_one_admin(membership, leaving=True)
        audit(actor=by, action="membership.remove", obj=membership, user=membership.user.username)
        membership.delete()


def _check_role(role: str) -> None:
    if role not in Role.values:
        raise Refused(f"“{role}” is not a role. Choose one of {', '.join(Role.values)}.", code="role_unknown")


def _keep_one_admin(membership: Membership, *, leaving: bool) -> None:
    admins = list(
        Membership.objects.select_for_update()
        .filter(project=membership.project, role=Role.ADMIN)
        .values_list("pk", flat=True)
    )
    if leaving and admins == [membership.pk]:
        raise Conflict(
            "A project needs at least one admin. Make someone else admin first.", code="last_admin"
        )


def api_key_create(*, project: Project, name: str, scopes: Iterable[str], by: Actor) -> NewKey:
    """Make a key. Its creator must hold every scope that the key gets."""
    wanted = sorted(set(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown:
        raise Refused(f"Unknown scope “{unknown[0]}”. Choose from {', '.join(SCOPES)}.", code="scope_unknown")
    if not wanted:
        raise Refused("Choose at least one scope.", code="scope_missing")
    if not name.strip():
        raise Refused("Give the key a name, so that you can tell later what uses it.", code="name_missing")
    for scope in wanted:
        by.require(scope)
    creator = by.user or (by.key.created_by if by.key else None)
    if creator is None:
        raise Refused("A key needs a person who made it.", code="creator_missing")
    secret = f"fw_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        project=project,
        name=name.strip()[:100],
        prefix=secret[:10],
        digest=key_digest(secret),
        scopes=wanted,
        created_by=creator,
    )
    audit(actor=by, action="api_key.create", obj=key, scopes=wanted)
    return NewKey(key, secret)


def api_key_revoke(*, key: ApiKey, by: Actor) -> None:
    """Idempotent."""
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        audit(actor=by, action="api_key.revoke", obj=key)


def user_set_theme(*, user: User, theme: str) -> None:
    if theme not in User.Theme.values:
        raise Refused("Choose system, light or dark.", code="theme_unknown")
    user.theme = theme
    user.save(update_fields=["theme"])


def alert_raise(
    *, project: Project, key: str, title: str, detail: str = "", url: str = "", level: str = "warn"
) -> None:
    """Open an alert, or refresh the open one with the same key."""
    Alert.objects.update_or_create(
        project=project,
        key=key,
        resolved_at=None,
        defaults={"title": title[:200], "detail": detail, "url": url, "level": level},
    )


def alert_resolve(*, project: Project, key: str) -> None:
    alerts_resolve(project=project, keys=[key])


def alerts_resolve(*, project: Project, keys: Collection[str]) -> None:
    """Close what is open of them. It is read first: most of the time nothing is, and on SQLite a write
    that changes nothing takes the one write lock all the same."""
    found = Alert.objects.filter(project=project, key__in=keys, resolved_at=None)
    if keys and found.exists():
        found.update(resolved_at=timezone.now())
