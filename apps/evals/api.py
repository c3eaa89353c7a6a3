"""REST: suites, imports, runs, comparisons, probes, long-context maps."""

from ninja import Router

from apps.evals.api_compare import router as compare
from apps.evals.api_dashboard import router as dashboard
from apps.evals.api_gates import router as gates
from apps.evals.api_imports import router as imports
from apps.evals.api_judges import router as judges
from apps.evals.api_maps import router as maps
from apps.evals.api_pack_suites import router as pack_suites
from apps.evals.api_probes import router as probes
from apps.evals.api_runs import router as runs
from apps.evals.api_suites import router as suites

router = Router()
for part in (imports, suites, pack_suites, runs, compare, gates, dashboard, probes, maps, judges):
    router.add_router("", part)
