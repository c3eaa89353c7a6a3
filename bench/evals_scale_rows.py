"""The rows of ``evals_scale``: a project, suites with families, tags and shared sources, and runs
whose rows are written by the database itself."""

import socket
import threading
import time

import httpx
import uvicorn
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.core.models import Membership, Project, Role, User
from apps.core.permissions import actor_for_user
from apps.core.services import api_key_create
from apps.evals.dimensions import TAG
from apps.evals.models import Result, Run, RunSlice, Suite, SuiteVersion
from apps.versions.models import Deployment
from config.asgi import application


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Two of three cases share a source with some others; every one has a family and two tags.
_CASES = """
INSERT INTO evals_case (suite_id, key, digest, family, source, tags, split, task)
SELECT %s, names.key, lpad(to_hex(number), 64, '0'), 'family-' || number %% 12,
    CASE WHEN number %% 3 > 0 THEN 'source-' || number / 30 ELSE '' END,
    jsonb_build_object('length', 128 << number %% 5, 'topic', 'topic-' || number %% 20), '',
    jsonb_build_object('id', names.key, 'messages',
        '[{"role": "user", "content": "What is the total?"}]'::jsonb)
FROM (SELECT number, %s || '-' || number AS key FROM generate_series(0, %s - 1) AS number) AS names
ORDER BY number
"""
_PLACES = """
INSERT INTO evals_suiteversioncase (version_id, case_id, index)
SELECT %s, id, row_number() OVER (ORDER BY id) - 1 FROM evals_case WHERE suite_id = %s
"""
_RESULTS = """
INSERT INTO evals_result (
    run_id, case_id, family, sample, state, score, answer, verdict, flags, error, prompt_tokens,
    completion_tokens, earlier_prompt_tokens, earlier_completion_tokens, ttft_ms, per_token_ms,
    latency_ms, served_model, attempts, cached, attempt, created_at{others}
)
SELECT %s, drawn.case_id, drawn.family, drawn.sample, drawn.state,
    CASE drawn.state WHEN 'passed' THEN 1.0 WHEN 'failed' THEN 0.0 END,
    CASE WHEN drawn.state = 'error' THEN '' ELSE repeat('The answer is 42. ', 6) END,
    CASE WHEN drawn.state IN ('passed', 'failed') THEN jsonb_build_object(
        'state', drawn.state, 'score', CASE drawn.state WHEN 'passed' THEN 1 ELSE 0 END,
        'reasons', jsonb_build_array('The field total differs.'), 'checks', '[]'::jsonb) END,
    CASE WHEN drawn.draw %% 997 = 0 THEN '[{"detector": "early_exit", "reason": "Seen."}]'::jsonb
        ELSE '[]'::jsonb END,
    CASE WHEN drawn.state = 'error' THEN 'engine: no answer' ELSE '' END,
    200 + drawn.draw %% 800, drawn.draw %% 90, 0, 0, 20 + drawn.draw %% 300, 5 + drawn.draw %% 20,
    200 + drawn.draw %% 4000, 'bench', 1 + (drawn.draw %% 50 = 0)::int, drawn.draw %% 10 = 0, 1, now(){values}
FROM (
    SELECT cases.id AS case_id, cases.family, sample, hash.draw,
        CASE WHEN hash.draw %% 100 < 70 THEN 'passed' WHEN hash.draw %% 100 < 96 THEN 'failed'
            WHEN hash.draw %% 100 < 99 THEN 'error' ELSE 'unscored' END AS state
    FROM evals_case AS cases, generate_series(0, %s - 1) AS sample,
        LATERAL (SELECT abs(hashint8(cases.id * 256 + sample)::bigint) AS draw) AS hash
    WHERE cases.suite_id = %s
    ORDER BY cases.id, sample
) AS drawn
"""


class World:
    """One project with a visitor who is signed in."""

    def __init__(self) -> None:
        self.project = Project.objects.create(name="Scale", slug="scale")
        user = User.objects.create_user("bench", password="correct horse battery")
        Membership.objects.create(project=self.project, user=user, role=Role.ADMIN)
        self.target = Deployment.objects.create(
            project=self.project, name="bench", kind="external", base_url="http://127.0.0.1:9", model="bench",
            input_usd_per_mtok=1, output_usd_per_mtok=2,
        )  # fmt: skip
        self._client = Client()
        self._client.force_login(user)
        by = actor_for_user(user=user, project=self.project)
        key = api_key_create(project=self.project, name="bench", scopes=["read"], by=by).secret
        self._client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {key}"
        self._pages = self._serve()

    def run(self, name: str, cases: int, samples: int) -> Run:
        """A finished run whose results are there and not added up yet."""
        suite = Suite.objects.create(project=self.project, name=name, slug=name, created_by="bench")
        version = SuiteVersion.objects.create(
            suite=suite, number=1, digest="0" * 64, tasks_digest="0" * 64, count=cases, created_by="bench"
        )
        with connection.cursor() as cursor:
            cursor.execute(_CASES, [suite.pk, name, cases])
            cursor.execute(_PLACES, [version.pk, suite.pk])
        return self._results(version, samples)

    def again(self, run: Run) -> Run:
        """Another finished run over the same cases, one sample of each, to compare with."""
        return self._results(run.suite_version, 1)

    def analyze(self) -> None:
        """What the database's own housekeeping would have done by the time that somebody looks."""
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def _results(self, version: SuiteVersion, samples: int) -> Run:
        now = timezone.now()
        run = Run.objects.create(
            project=self.project, suite_version=version, deployment=self.target, state="done",
            sampling={"samples": samples, "temperature": 1.0, "top_p": 1.0, "seed": 0},
            total=version.count * samples,
            input_usd_per_mtok=1, output_usd_per_mtok=2, created_by="bench", started_at=now, finished_at=now,
            ran_s=60.0,
        )  # fmt: skip
        others = {
            field.column: field.get_db_prep_save(field.get_default(), connection)
            for field in Result._meta.concrete_fields
            if field.column and field.column not in _RESULTS and not field.null and not field.primary_key
        }
        query = _RESULTS.replace("{others}", "".join(f", {name}" for name in others))
        query = query.replace("{values}", ", %s" * len(others))
        with connection.cursor() as cursor:
            cursor.execute(query, [run.pk, *others.values(), samples, version.suite_id])
        return run

    def ask(self, path: str) -> None:
        """Over HTTP, from the server in this process."""
        answer = self._pages.get(path)
        assert answer.status_code == 200, (path, answer.status_code)

    def queries_of(self, path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert self._client.get(path).status_code == 200, path
        return len(queries)

    def _serve(self) -> httpx.Client:
        """Start the application's own server in a thread; the visitor's session comes along."""
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(application, port=port, log_level="error", lifespan="off"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.05)
        name = settings.SESSION_COOKIE_NAME
        return httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            cookies={name: self._client.cookies[name].value},
            headers={"Authorization": str(self._client.defaults["HTTP_AUTHORIZATION"])},
            timeout=120,
        )

    def pages(self, runs: dict[str, Run], others: dict[str, Run]) -> dict[str, dict[str, str]]:
        """Addresses by page and size: whatever shows a run, its results, or its suite."""
        found: dict[str, dict[str, str]] = {}
        for size, run in runs.items():
            own, rest = run.get_absolute_url(), f"/api/v1/runs/{run.pk}"
            last = Result.objects.filter(run=run).order_by("-pk").values_list("pk", flat=True)[0]
            for name, path in {
                "run": own,
                "deep results": f"{own}?after={self.middle_of(run)}",
                "last results": f"{own}?before={last}",
                "errors": f"{own}?state=error",
                "family": f"{own}?family=family-3",
                "tag": f"{own}?tag={self.tag_choice(run)}",
                "search": f"{own}?q={size}-{run.suite_version.count - 1}",
                "search for nothing": f"{own}?q=zzzz",
                "result": f"{own}results/{last}/",
                "comparison": f"{own}compare/?against={others[size].pk}",
                "dashboard": f"/evals/dashboard/?suite={run.suite_version.suite_id}",
                "suite": f"/evals/suites/{run.suite_version.suite_id}/",
                "suite version": run.suite_version.get_absolute_url(),
                "REST run": rest,
                "REST results": f"{rest}/results?after={self.middle_of(run)}",
                "REST errors": f"{rest}/results?state=error&after={self.middle_of(run)}",
                "REST slices": f"{rest}/slices?by=topic",
            }.items():
                found.setdefault(name, {})[size] = path
        return {**found, "list of runs": {"": "/evals/runs/"}}

    def middle_of(self, run: Run) -> int:
        first = Result.objects.filter(run=run).order_by("pk").values_list("pk", flat=True)[0]
        return int(first) + run.total // 2

    def tag_choice(self, run: Run) -> int:
        """The place of a value of “topic” among the choices of the filter."""
        tags = RunSlice.objects.filter(run=run, dimension__startswith=TAG).order_by("dimension", "value")
        return list(tags.values_list("dimension", "value")).index((f"{TAG}topic", "topic-7"))
