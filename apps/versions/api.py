"""REST: versions, releases, routing, deployments."""

from ninja import Router

from apps.versions.api_deployments import router as deployments
from apps.versions.api_releases import router as releases
from apps.versions.api_versions import router as versions

router = Router()
for part in (versions, releases, deployments):
    router.add_router("", part)
