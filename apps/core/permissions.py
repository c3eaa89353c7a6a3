"""Who may do what: roles of people, scopes of keys, one table."""

from dataclasses import dataclass

from django.core.exceptions import PermissionDenied

from apps.core.models import ApiKey, Membership, Project, Role, User

# Every scope, and the least role that carries it for a person.
SCOPES: dict[str, str] = {
    "read": Role.VIEWER,
    "capture": Role.LABELLER,
    "label": Role.LABELLER,
    "gateway": Role.ENGINEER,
    "evals": Role.ENGINEER,
    "training": Role.ENGINEER,
    "versions": Role.ENGINEER,
    "release": Role.RELEASE_MANAGER,
    "held_out": Role.RELEASE_MANAGER,
    "admin": Role.ADMIN,
}
_RANK = {role: rank for rank, role in enumerate(Role.values)}


@dataclass(frozen=True)
class Actor:
    """Who acts: a person in a project, or one of its keys. ``name`` goes into the audit trail."""

    project: Project
    name: str
    user: User | None = None
    key: ApiKey | None = None
    role: str = ""

    def may(self, scope: str) -> bool:
        if self.key is not None:
            return scope in self.key.scopes
        return bool(self.role) and _RANK[self.role] >= _RANK[SCOPES[scope]]

    def require(self, scope: str) -> None:
        """Raise PermissionDenied with a sentence that says what is missing."""
        if self.may(scope):
            return
        if self.key is not None:
            raise PermissionDenied(f"This API key lacks the scope “{scope}”.")
        needed = Role(SCOPES[scope]).label
        raise PermissionDenied(f"This needs the role {needed} or higher in {self.project.name}.")


def actor_for_user(*, user: User, project: Project) -> Actor:
    """The person as a member of ``project``; a stranger is refused."""
    membership = Membership.objects.filter(user=user, project=project).first()
    if membership is None:
        raise PermissionDenied("You are not a member of this project.")
    return Actor(project=project, name=user.username, user=user, role=membership.role)


def actor_for_key(*, key: ApiKey) -> Actor:
    return Actor(project=key.project, name=f"key:{key.prefix}", key=key)


def system_actor(project: Project, name: str = "system") -> Actor:
    """The application itself (gates, schedules). It may do what its caller already decided."""
    return Actor(project=project, name=name, role=Role.ADMIN)
