"""Addresses that answer: our engines, named by the installation's settings, and external endpoints.

An external endpoint's key is encrypted on its way in and never shown again.
"""

import socket
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.crypto import encrypt_bytes
from apps.core.errors import Conflict, Refused
from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.services import alert_resolve, audit
from apps.versions.addresses import AddressRefused, host_normalized, host_refused, resolve_allowed
from apps.versions.foreign_answers import AnswerTooLong, answer_read
from apps.versions.models import Deployment, EditionKind
from apps.versions.selectors import deployment_key
from apps.versions.services.locking import project_lock
from apps.versions.services.routing import routing_publish
from apps.versions.terms import Terms, terms_checked

TEST_TIMEOUT_S = 5.0


class ConnectionResult(NamedTuple):
    ok: bool
    sentence: str


def engines_register(*, project: Project, by: Actor) -> list[Deployment]:
    """Make the project's engine rows match the settings: one per edition and address.

    A changed address replaces the old one in place, so that data made elsewhere can be served here.
    """
    wanted = {
        name: (kind, url)
        for kind, urls in (
            (EditionKind.STANDARD, settings.ENGINE_STANDARD_URL),
            (EditionKind.HIGH_SPEED, settings.ENGINE_HIGHSPEED_URL),
        )
        for name, url in _named(kind, urls)
    }
    known = {row.name: (row.edition_kind, row.base_url) for row in project.deployments.engines()}
    if known == wanted:
        return list(project.deployments.engines())
    with transaction.atomic():
        project_lock(project)
        for name, (kind, url) in wanted.items():
            row, made = Deployment.objects.get_or_create(
                project=project,
                name=name,
                retired_at=None,
                defaults={"kind": Deployment.Kind.ENGINE, "edition_kind": kind, "base_url": url},
            )
            if not made and row.base_url != url:
                row.base_url, row.healthy, row.loaded, row.checked_at = url, None, [], None
                row.save(update_fields=["base_url", "healthy", "loaded", "checked_at"])
        project.deployments.engines().exclude(name__in=wanted).update(retired_at=timezone.now())
        audit(actor=by, action="engines.register", engines=sorted(wanted))
        routing_publish(project=project, reason="Engines as named in the settings", by=by)
    return list(project.deployments.engines())


def _named(kind: str, urls: str) -> list[tuple[str, str]]:
    """Several engines of one edition are given as addresses separated by commas."""
    addresses = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
    name = f"engine-{kind.replace('_', '-')}"
    return [(name if i == 0 else f"{name}-{i + 1}", url) for i, url in enumerate(addresses)]


def deployment_register_external(
    *,
    project: Project,
    name: str,
    base_url: str,
    model: str,
    api_key: str,
    by: Actor,
    terms: Terms = Terms(),  # noqa: B008  (frozen)
) -> Deployment:
    """Register an OpenAI-compatible endpoint of someone else's; ``base_url`` with or without ``/v1``."""
    name, base_url, model = _checked(name, base_url, model)
    terms_checked(terms)
    with transaction.atomic():
        project_lock(project)
        _check_name_free(project, name)
        row = Deployment.objects.create(
            project=project,
            name=name,
            kind=Deployment.Kind.EXTERNAL,
            base_url=base_url,
            model=model,
            api_key=encrypt_bytes(api_key.strip().encode()) if api_key.strip() else None,
            **terms.as_dict(),
        )
        audit(actor=by, action="endpoint.register", obj=row, name=name)
        routing_publish(project=project, reason=f"Endpoint {name} registered", by=by)
    return row


def deployment_change_external(
    *,
    deployment: Deployment,
    name: str,
    base_url: str,
    model: str,
    by: Actor,
    api_key: str | None = None,
    terms: Terms | None = None,
) -> Deployment:
    """Change an endpoint; ``api_key`` None or empty keeps the key that is stored, ``terms`` None the terms.

    A new address needs the key again: a stored key must not be sent to wherever someone points it.
    """
    name, base_url, model = _checked(name, base_url, model)
    if terms is not None:
        terms_checked(terms)
    with transaction.atomic():
        project_lock(deployment.project)
        row = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment.pk)
        _require_live_external(row)
        if name != row.name:
            _check_name_free(row.project, name)
        key = (api_key or "").strip()
        if not key and row.api_key and base_url != row.base_url:
            raise Refused("Enter the API key again: it was given for another address.", code="key_needed")
        if key or (base_url, model) != (row.base_url, row.model):
            row.healthy, row.checked_at = None, None
        row.name, row.base_url, row.model = name, base_url, model
        if key:
            row.api_key = encrypt_bytes(key.encode())
        changed = _set_terms(row, terms) if terms is not None else {}
        row.save()
        audit(actor=by, action="endpoint.change", obj=row, name=name, new_key=bool(key), **changed)
        routing_publish(project=row.project, reason=f"Endpoint {name} changed", by=by)
    return row


def _set_terms(row: Deployment, terms: Terms) -> dict[str, Any]:
    """Set what differs and return it, as JSON for the audit row."""
    changed = {name: value for name, value in terms.as_dict().items() if value != getattr(row, name)}
    for name, value in changed.items():
        setattr(row, name, value)
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in changed.items()}


def deployment_retire(*, deployment: Deployment, by: Actor) -> None:
    """Take an endpoint out of routing and forget its key. Idempotent."""
    with transaction.atomic():
        project_lock(deployment.project)
        row = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment.pk)
        if row.kind != Deployment.Kind.EXTERNAL:
            raise Conflict(
                "Engines come from this installation's settings. Change them there.", code="engine"
            )
        if row.retired_at is not None:
            return
        row.retired_at, row.api_key = timezone.now(), None
        row.save(update_fields=["retired_at", "api_key"])
        audit(actor=by, action="endpoint.retire", obj=row, name=row.name)
        alert_resolve(project=row.project, key=f"endpoint:{row.pk}")
        routing_publish(project=row.project, reason=f"Endpoint {row.name} retired", by=by)


def deployment_test(*, deployment: Deployment, by: Actor) -> ConnectionResult:
    """Ask the endpoint for its models and say in one sentence what came back.

    Redirects are not followed and nothing of the answer is shown but whether it names the model:
    the address was typed by a person and may be anywhere.
    """
    _require_live_external(deployment)
    result = _probe(deployment)
    deployment.healthy, deployment.checked_at = result.ok, timezone.now()
    deployment.save(update_fields=["healthy", "checked_at"])
    audit(actor=by, action="endpoint.test", obj=deployment, ok=result.ok)
    return result


def _probe(deployment: Deployment) -> ConnectionResult:
    url = httpx.URL(deployment.base_url.rstrip("/").removesuffix("/v1") + "/v1/models")
    try:
        answer = _ask(url, key=deployment_key(deployment))
    except AddressRefused:
        return ConnectionResult(False, "Its name leads to an address that no model may be served from.")
    except socket.gaierror:
        return ConnectionResult(False, "The address could not be reached. Check host, port and certificate.")
    except httpx.TimeoutException:
        return ConnectionResult(False, f"No answer within {TEST_TIMEOUT_S:.0f} s.")
    except AnswerTooLong:
        return ConnectionResult(False, "It answers, but not like an OpenAI-compatible endpoint.")
    except (httpx.HTTPError, httpx.InvalidURL):
        return ConnectionResult(False, "The address could not be reached. Check host, port and certificate.")
    if answer.status_code in (401, 403):
        return ConnectionResult(False, f"It answers, but refuses the API key (status {answer.status_code}).")
    if answer.status_code != 200:
        return ConnectionResult(
            False, f"It answers with status {answer.status_code} where a list of models was expected."
        )
    try:
        names = {str(card["id"]) for card in answer.json()["data"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return ConnectionResult(False, "It answers, but not like an OpenAI-compatible endpoint.")
    if deployment.model not in names:
        return ConnectionResult(False, f"It answers, but does not offer the model “{deployment.model}”.")
    return ConnectionResult(True, f"It answers and offers “{deployment.model}”.")


def _ask(url: httpx.URL, *, key: str) -> httpx.Response:
    """GET from an address that was looked at after it was resolved: the name is not resolved again."""
    host = url.raw_host.decode()
    addresses = resolve_allowed(host, url.port or (443 if url.scheme == "https" else 80))
    headers = {"Host": url.netloc.decode()} | ({"Authorization": f"Bearer {key}"} if key else {})
    with httpx.Client(timeout=TEST_TIMEOUT_S, trust_env=False) as client:
        for address in addresses:
            request = client.build_request("GET", url.copy_with(host=address), headers=headers)
            request.extensions["sni_hostname"] = host
            try:
                return answer_read(client, request, within_s=TEST_TIMEOUT_S)
            except httpx.ConnectError:
                if address == addresses[-1]:
                    raise
    raise AssertionError("unreachable: there is at least one address")


def _checked(name: str, base_url: str, model: str) -> tuple[str, str, str]:
    name, base_url, model = name.strip(), base_url.strip().rstrip("/"), model.strip()
    if not name or len(name) > 100 or not all(c.isalnum() or c in "._-" for c in name):
        raise Refused(
            "Name the endpoint with letters, digits, dots, dashes and underscores.", code="name_malformed"
        )
    if not model:
        raise Refused("Say which model to ask the endpoint for.", code="model_missing")
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port  # a malformed port raises here
    except ValueError:
        raise Refused("This is not an address.", code="url_malformed") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Refused("The address must start with http:// or https://.", code="url_scheme")
    if parts.username or parts.password:
        raise Refused("Put the key into its own field, not into the address.", code="url_credentials")
    if parts.query or parts.fragment:
        raise Refused("The address has no “?” or “#” part.", code="url_query")
    if len(base_url) > 300:
        raise Refused("The address is longer than 300 characters.", code="url_long")
    _refuse_metadata_addresses(host)
    return name, base_url, model


def _refuse_metadata_addresses(host: str) -> None:
    """Refuse what is no host, and addresses that no model may be served from."""
    host = host_normalized(host)
    forbidden = " /\\" if ":" in host else " /\\%"
    if not host.isprintable() or any(character in forbidden for character in host):
        raise Refused("This is not an address.", code="url_malformed")
    if host_refused(host):
        raise Refused("This address is not one that a model can be served from.", code="url_address")


def _check_name_free(project: Project, name: str) -> None:
    if project.deployments.in_use().filter(name=name).exists():
        raise Conflict(f"There is already an endpoint named “{name}”.", code="name_taken")


def _require_live_external(row: Deployment) -> None:
    if row.kind != Deployment.Kind.EXTERNAL:
        raise Conflict("Engines come from this installation's settings. Change them there.", code="engine")
    if row.retired_at is not None:
        raise Conflict(f"The endpoint {row.name} is retired.", code="retired")
