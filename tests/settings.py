"""Settings of the test run: a data folder of its own, made before the real settings look for one."""

import atexit
import os
import shutil
import tempfile

_data = tempfile.mkdtemp(prefix="flywheel-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["FLYWHEEL_DATA"] = _data
os.environ["FLYWHEEL_ARTIFACTS"] = f"file://{_data}/artifacts"
os.environ["FLYWHEEL_ADAPTERS"] = f"{_data}/adapters"
os.environ.setdefault("OMP_NUM_THREADS", "1")

from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
os.makedirs(f"{_data}/static", exist_ok=True)
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file: in a shared database in memory a page that is still being served locks out the next test.
    DATABASES["default"]["TEST"] = {"NAME": f"{_data}/test.sqlite3"}
