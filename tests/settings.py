"""Settings of the test run: a data folder of its own, made before the real settings look for one.

Its secrets are the same in every run: who is in a canary and what a token says hang on them.
"""

import atexit
import base64
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

_data = tempfile.mkdtemp(prefix="flywheel-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["FLYWHEEL_DATA"] = _data
os.environ["FLYWHEEL_ARTIFACTS"] = f"file://{_data}/artifacts"
os.environ["FLYWHEEL_ADAPTERS"] = f"{_data}/adapters"
os.environ.setdefault("OMP_NUM_THREADS", "1")

_secrets = Path(_data) / "secrets"
_secrets.mkdir(mode=0o700)
for _name in ("secret_key", "encryption_keys"):
    (_secrets / _name).write_bytes(base64.urlsafe_b64encode(hashlib.sha256(_name.encode()).digest()))
    (_secrets / _name).chmod(0o600)

from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
os.makedirs(f"{_data}/static", exist_ok=True)
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file: in a shared database in memory a page that is still being served locks out the next test.
    DATABASES["default"]["TEST"] = {"NAME": f"{_data}/test.sqlite3"}
    DATABASES["default"]["OPTIONS"]["timeout"] = 240  # a guard, far above what a busy machine takes
else:
    # Two runs on one server, of two checkouts perhaps, must not drop each other's database.
    DATABASES["default"]["TEST"] = {"NAME": f"test_flywheel_{os.getpid()}"}
