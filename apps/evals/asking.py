"""Direct questions to whatever answers a target: short chats, first tokens, token counts, with timeouts.

An engine is asked as it is; an external endpoint is asked past the gateway, because the gateway
replaces the very model name that a probe wants to see. Its name is resolved once and looked at then, and
redirects are not followed. A rate limit is waited for within the listener's patience.
"""

import math
import time
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx

from apps.evals.dialect import DEFAULT, Dialect
from apps.evals.patience import Patience, Tally, wait_asked
from apps.versions.addresses import AddressRefused, resolve_allowed
from apps.versions.foreign_answers import AnswerTooLong, answer_read
from apps.versions.models import Deployment, ModelVersion
from apps.versions.selectors import deployment_key, engine_target
from domain.drift import sample_of
from domain.storable import storable

TIMEOUT = httpx.Timeout(15.0, connect=3.0)
WHOLE_S = 60.0  # from sending a question to the end of its answer: a server may drip for ever
MAX_TEXT, MAX_TOKEN_TEXT = 4000, 100
_MOST_TOKENS = 2**24  # of one question; a round adds up a thousand of them


class CannotAsk(Exception):
    """No usable answer. The sentence is for people and quotes nothing of the answer.

    ``status`` is what the target answered with, None where it gave no answer of HTTP at all.
    """

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status


class Asked(NamedTuple):
    """``fingerprint`` is empty and ``prompt_tokens`` None where the endpoint does not tell them."""

    text: str
    model: str
    fingerprint: str
    prompt_tokens: int | None


class First(NamedTuple):
    """The first token as text, and its alternatives by log-probability where they were asked for and told."""

    token: str
    sample: dict[str, float] | None


class Tokens(NamedTuple):
    """``room`` is the longest sequence that the model takes, None where it is not told."""

    used: int
    room: int | None


class Listener:
    """``with Listener(...) as model``: connections to a version's edition or to an endpoint.

    Its methods may be called from several threads. Raises Refused where no engine serves the edition.
    """

    def __init__(
        self,
        *,
        version: ModelVersion | None,
        edition_kind: str,
        deployment: Deployment | None,
        patience_s: float = 0.0,
    ) -> None:
        if version is not None:
            target = engine_target(version, edition_kind)
            self._connect(target.base_url, target.model, patience_s)
        else:
            assert deployment is not None
            key = deployment_key(deployment)
            self._connect(deployment.base_url, deployment.model, patience_s, key=key, foreign=True)

    @classmethod
    def at(cls, root: str, model: str, *, patience_s: float = 0.0) -> Self:
        """A listener to an address, with no key."""
        made = cls.__new__(cls)
        made._connect(root, model, patience_s)
        return made

    def _connect(
        self, root: str, model: str, patience_s: float, *, key: str = "", foreign: bool = False
    ) -> None:
        self._root, self._model, self._foreign = root.rstrip("/").removesuffix("/v1"), model, foreign
        self._addresses: list[str] = []
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.dialect, self.tally, self.patience = DEFAULT, Tally(), Patience(patience_s)
        self.end_s = math.inf  # monotonic; nothing is asked after it

    def __enter__(self) -> Self:
        self._http = httpx.Client(headers=self._headers, timeout=TIMEOUT, trust_env=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ask(self, prompt: str, *, max_tokens: int = 24, dialect: Dialect | None = None) -> Asked:
        """The answer to ``prompt`` at temperature 0. Raises CannotAsk."""
        spoken = dialect or self.dialect
        answer = self._chat(spoken.body(prompt, max_tokens=max_tokens, temperature=0.0, seed=0))
        try:
            text = answer["choices"][0]["message"].get("content") or ""
        except (KeyError, IndexError, TypeError, AttributeError):
            raise CannotAsk("It answers, but not like an OpenAI-compatible endpoint.") from None
        return Asked(
            text=str(text)[:MAX_TEXT],
            model=str(answer.get("model") or "")[:200],
            fingerprint=str(answer.get("system_fingerprint") or "")[:200],
            prompt_tokens=_count(answer, "prompt_tokens"),
        )

    def first_token(self, prompt: str, *, temperature: float = 0.0, top: int = 0) -> First:
        """One token of an answer; ``top`` alternatives with log-probabilities. Raises CannotAsk.

        At temperature 0 the sampled token is the best one, so that engines which list it in place of
        the last alternative list the same tokens every time.
        """
        body = self.dialect.body(prompt, max_tokens=1, temperature=temperature)
        if top:
            body |= {"logprobs": True, "top_logprobs": top}
        answer = self._chat(body)
        try:
            choice = answer["choices"][0]
            token = str(choice["message"].get("content") or "")[:MAX_TOKEN_TEXT]
            told = (choice.get("logprobs") or {}).get("content") or []
            entries = [(_name(row), float(row["logprob"])) for row in told[0]["top_logprobs"]] if told else []
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError):
            raise CannotAsk("It answers, but not like an OpenAI-compatible endpoint.") from None
        return First(token, sample_of(entries))

    def tokens(self, prompt: str) -> Tokens:
        """How many tokens ``prompt`` takes as a chat message. Raises CannotAsk."""
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt}],
            "add_generation_prompt": True,
        }
        answer = self._post("/tokenize", body)
        count, room = answer.get("count"), answer.get("max_model_len")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise CannotAsk("It does not count tokens: “/tokenize” does not answer as vLLM's does.")
        return Tokens(count, room if isinstance(room, int) else None)

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._post("/v1/chat/completions", {"model": self._model, **body})
        self.tally.add_tokens(_count(answer, "prompt_tokens") or 0, _count(answer, "completion_tokens") or 0)
        return answer

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        for attempt in range(20):
            if time.monotonic() >= self.end_s:
                raise CannotAsk("It takes too long to answer everything that was to be asked.")
            self.tally.add_request()
            try:
                answer = self._send(self._root + path, body)
            except AddressRefused:
                raise CannotAsk("Its name leads to an address that no model may be served from.") from None
            except httpx.TimeoutException:
                raise CannotAsk("It did not answer in time.") from None
            except AnswerTooLong:
                raise CannotAsk("Its answer is far longer than was asked for.") from None
            except (httpx.HTTPError, httpx.InvalidURL, OSError):
                raise CannotAsk("It could not be reached.") from None
            seconds = wait_asked(answer.status_code, answer.headers.get("retry-after"), attempt)
            if seconds is None:
                return _read(path, answer)
            if not self.patience.wait(seconds):
                status = answer.status_code
                raise CannotAsk(
                    f"It limits requests (status {status}) and asks to wait longer than a round may.", status
                )
        raise CannotAsk("It limits requests again and again.", 429)

    def _send(self, url: str, body: dict[str, Any]) -> httpx.Response:
        """POST; to an endpoint of someone else's only at the addresses that were looked at."""
        if not self._foreign:
            return self._received(self._http.build_request("POST", url, json=body))
        target = httpx.URL(url)
        host = target.raw_host.decode()
        if not self._addresses:
            self._addresses = resolve_allowed(host, target.port or (443 if target.scheme == "https" else 80))
        for address in self._addresses:
            there = target.copy_with(host=address)
            request = self._http.build_request(
                "POST", there, json=body, headers={"Host": target.netloc.decode()}
            )
            request.extensions["sni_hostname"] = host
            try:
                return self._received(request)
            except httpx.ConnectError:
                if address == self._addresses[-1]:
                    raise
        raise AssertionError("unreachable: there is at least one address")

    def _received(self, request: httpx.Request) -> httpx.Response:
        return answer_read(self._http, request, within_s=WHOLE_S)


def _read(path: str, answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code != 200:
        raise CannotAsk(f"It answered “{path}” with status {answer.status_code}.", answer.status_code)
    try:
        value = storable(answer.json())
    except (ValueError, RecursionError):
        raise CannotAsk("It did not answer with JSON.") from None
    if not isinstance(value, dict):
        raise CannotAsk("It did not answer with a JSON object.")
    return value


def _count(answer: dict[str, Any], name: str) -> int | None:
    usage = answer.get("usage")
    value = usage.get(name) if isinstance(usage, dict) else None
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if known and isinstance(value, int) else None


def _name(row: dict[str, Any]) -> str:
    return str(row["token"])[:MAX_TOKEN_TEXT]
