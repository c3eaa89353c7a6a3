"""What a backend says of a sandbox that was lost while it ran one program."""

import pytest

from workers.sandbox.bubblewrap import BubblewrapBackend
from workers.sandbox.docker.backend import DockerBackend
from workers.sandbox.protocol import ExecResult, SandboxGone, SandboxSpec


class _Lost:
    """A sandbox that is gone, before or after a program had begun in it."""

    def __init__(self, after_code: bool) -> None:
        self._after_code = after_code

    async def exec(self, *_: object, **__: object) -> ExecResult:
        raise SandboxGone("the agent hung up", after_code=self._after_code)

    async def close(self) -> None:
        return None


@pytest.mark.parametrize("kind", [BubblewrapBackend, DockerBackend])
@pytest.mark.parametrize(("after_code", "status"), [(True, "signal"), (False, "infra_error")])
async def test_a_sandbox_lost_after_code_began_is_the_codes_own_doing(
    kind: type, after_code: bool, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create(*_: object) -> _Lost:
        return _Lost(after_code)

    backend = kind()
    monkeypatch.setattr(backend, "create", create)

    result = await backend.run(SandboxSpec(), ["python", "-c", "pass"])

    assert (result.status, result.detail) == (status, "the agent hung up")
