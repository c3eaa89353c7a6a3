"""A small world behind the API's paths: what a turn needs, kept in memory.

Makers are real enough to be caught doubling: every POST that makes something appends a row.
"""

import threading
from typing import Any

import httpx

from clients.flywheel import ApiError


class FakeApi:
    """``answers`` maps a question to its right answer; every ``wrong_every``-th question goes wrong."""

    def __init__(self, answers: dict[str, str] | None = None, wrong_every: int = 2) -> None:
        self.answers, self.wrong_every = answers or {}, wrong_every
        self.admission, self.healthy = "admitted", True
        self.versions = [{"id": 1, "number": "1.0", "state": "in_service", "adapter_digest": ""}]
        self.suites: list[dict[str, Any]] = []
        self.captures: list[dict[str, Any]] = []
        self.cases: list[dict[str, Any]] = []
        self.datasets: list[dict[str, Any]] = []
        self.training: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.releases: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.served = "1.0"
        self.failing: dict[str, ApiError] = {}
        self.asset_error: ApiError | None = None
        self.held_case = 0  # a person has this one open
        self._lock = threading.Lock()

    def close(self) -> None:
        pass

    def get(self, path: str, **query: Any) -> Any:
        self._fail(path)
        name, _, rest = path.strip("/").partition("/")
        match name:
            case "families":
                return [{"name": "invoice_fields", "verifier": 3}]
            case "verifiers":
                return {"admission": self.admission}
            case "deployments":
                return [{"kind": "engine", "healthy": self.healthy}, {"kind": "external", "healthy": None}]
            case "captures" | "cases":
                return self._page(getattr(self, name), query)
            case "training":
                return self._one_or_all(self.training, rest.removeprefix("runs").strip("/"))
            case "runs" if "/compare/" in path:
                return {"mean": 0.2, "low": 0.1, "high": 0.3, "sentence": "Better by 20 points.",
                        "base": {"text": "50 %"}, "new": {"text": "70 %"}}  # fmt: skip
            case "runs" | "versions" | "releases" | "suites":
                return self._one_or_all(getattr(self, name), rest)
        raise AssertionError(f"GET {path}")

    def post(self, path: str, body: Any = None) -> Any:
        self._fail(path)
        parts = path.strip("/").split("/")
        match parts:
            case ["suites"]:
                return self._add(self.suites, name=body["name"])
            case ["suites", suite, "versions"]:
                return {"id": 10 * int(suite), "count": len(body["tasks"])}
            case ["feedback"]:
                return {"results": [self._corrected(item) for item in body["items"]]}
            case ["cases", case, "label"]:
                if int(case) == self.held_case:
                    raise ApiError(409, "case_leased", "ada is working on this case.")
                self._case(case)["state"] = "labelled"
                return {}
            case ["cases", case, "asset"]:
                if self.asset_error and int(case) == self.cases[0]["id"]:
                    raise self.asset_error
                self._case(case)["state"] = "asset"
                return {}
            case ["datasets"]:
                return self._add(self.datasets, name=body["name"], count=7)
            case ["training", "runs"]:
                return self._add(self.training, **body, state="running", steps_done=0, pass_rate=None,
                                 version_id=None, error="")  # fmt: skip
            case ["training", "runs", run, "start"]:
                found = self._one_or_all(self.training, run)
                found["state"] = "running"
                return found
            case ["runs"]:
                return self._add(self.runs, **body, state="running", score={"text": "0 % (0–10)"})
            case ["versions"]:
                known = [row for row in self.versions if row.get("origin") == body["origin"]]
                return known[0] if known else self._add(self.versions, number="1.2", state="new", **body)
            case ["releases"]:
                return self._add(self.releases, candidate_id=body["version_id"], reason=body["reason"],
                                 state="running", step=0, weight=0.1, warming=False, paused=False,
                                 reasons=["No units yet."], units_at_end=None)  # fmt: skip
            case ["releases", release, "acknowledge"]:
                found = self._one_or_all(self.releases, release)
                found["acknowledged"] = True
                return found
        raise AssertionError(f"POST {path}")

    def chat(
        self, messages: list[dict[str, Any]], *, headers: dict[str, str] | None = None, **parameters: Any
    ) -> httpx.Response:
        self._fail("chat")
        name = (headers or {}).get("x-flywheel-external-id", "")
        question = messages[-1]["content"]
        self._fail(name)
        with self._lock:
            self.asked.append(name)
        number = int(name.rpartition("-")[2] or 0)
        text = "no idea" if number % self.wrong_every == 0 else self.answers.get(question, "")
        return httpx.Response(
            200,
            json={"choices": [{"message": {"content": text}}]},
            headers={
                "x-flywheel-operation": f"op-{name}", "x-flywheel-version": self.served,
                "x-flywheel-edition": "standard",
            },
        )  # fmt: skip

    def capture(self, external_id: str, *, state: str = "anonymized", failed: bool = True) -> None:
        """Something was captured, and its case opened where it can be."""
        row = self._add(self.captures, external_id=external_id, state=state, failed=failed)
        if failed and state == "anonymized":
            self._add(self.cases, capture=row["id"], state="new", family="invoice_fields")

    def _corrected(self, item: dict[str, Any]) -> dict[str, str]:
        with self._lock:
            if item["external_id"] not in [row["external_id"] for row in self.captures]:
                self.capture(item["external_id"])
        return {"status": "created", "message": ""}

    def _case(self, case: str) -> dict[str, Any]:
        return next(row for row in self.cases if row["id"] == int(case))

    def _fail(self, key: str) -> None:
        if key in self.failing:
            raise self.failing[key]

    @staticmethod
    def _add(rows: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        rows.append({"id": len(rows) + 1, **fields})
        return rows[-1]

    @staticmethod
    def _one_or_all(rows: list[dict[str, Any]], pk: str) -> Any:
        return next(row for row in rows if row["id"] == int(pk)) if pk else list(reversed(rows))

    @staticmethod
    def _page(rows: list[dict[str, Any]], query: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = {k: v for k, v in query.items() if k in ("state", "family")}
        before = query.get("before") or len(rows) + 1
        matching = [
            row for row in rows if row["id"] < before and all(row.get(k) == v for k, v in wanted.items())
        ]
        return list(reversed(matching))[: query.get("limit", 100)]
