"""Settings from the environment, with defaults that run embedded on one machine.

Every name is documented in ``.env.example``. Nothing outside ``config/`` and the backends asks
whether the installation is embedded.
"""

import importlib.util
import os
from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
if (BASE_DIR / ".env").is_file():
    env.read_env(BASE_DIR / ".env")

DATA_DIR = Path(env.str("FLYWHEEL_DATA", default=str(BASE_DIR / "var"))).resolve()
DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)

DEBUG = env.bool("FLYWHEEL_DEBUG", default=False)
ALLOWED_HOSTS = env.list("FLYWHEEL_HOSTS", default=["127.0.0.1", "localhost", "[::1]", "testserver"])
CSRF_TRUSTED_ORIGINS = env.list("FLYWHEEL_TRUSTED_ORIGINS", default=[])
BASE_URL = env.str("FLYWHEEL_URL", default="http://127.0.0.1:8000")


def _secret(name: str, generate: str) -> str:
    """Return a secret from the environment, or one generated once into the data folder (mode 0600)."""
    from config.secrets import read_or_create

    return env.str(f"FLYWHEEL_{name.upper()}", default="") or read_or_create(
        DATA_DIR / "secrets" / name, generate
    )


SECRET_KEY = _secret("secret_key", "token")
# Comma-separated Fernet keys, newest first: the first encrypts, all decrypt.
ENCRYPTION_KEYS = _secret("encryption_keys", "fernet").split(",")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "channels",
    "ninja",  # serves the API page's scripts itself
    "apps.core",
    "apps.versions",
    "apps.feedback",
    "apps.evals",
    "apps.training",
    "apps.gateway",
    "apps.loop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "apps.core.middleware.content_security_policy",
    "apps.core.middleware.RefuseUnstorable",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.core.middleware.current_project",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.core.context.navigation",
            ],
            "builtins": ["apps.core.templatetags.ui", "apps.core.templatetags.controls"],
        },
    }
]

DATABASES = {
    "default": env.db_url("FLYWHEEL_DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'flywheel.sqlite3'}")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # secure_delete: deleted ciphertext is overwritten, also where SQLite was built without it.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
        "PRAGMA secure_delete=ON;",
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "core.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "core:login"
LOGIN_REDIRECT_URL = "loop:home"
LOGOUT_REDIRECT_URL = "core:login"

LANGUAGE_CODE = "en"
TIME_ZONE = env.str("FLYWHEEL_TIME_ZONE", default="UTC")
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
_plotly = importlib.util.find_spec("plotly")
STATICFILES_DIRS = [
    BASE_DIR / "static",
    *(
        [("vendor/plotly", Path(_plotly.origin).parent / "package_data")]
        if _plotly and _plotly.origin
        else []
    ),
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

SESSION_COOKIE_SAMESITE = "Lax"
# The port is in the name: two installations on one host must not log each other out.
SESSION_COOKIE_NAME = f"flywheel_session_{env.str('FLYWHEEL_PORT', default='8000')}"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BASE_URL.startswith("https://")
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = env.int("FLYWHEEL_UPLOAD_BYTES", default=32 * 1024 * 1024)
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

_redis = env.str("FLYWHEEL_CHANNELS_URL", default="")
if _redis:
    CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [_redis]}}
    }

CELERY_APP = "config.celery.app"
BROKER_URL = env.str("FLYWHEEL_BROKER_URL", default="embedded://")
ARTIFACTS_URL = env.str("FLYWHEEL_ARTIFACTS", default=f"file://{DATA_DIR / 'artifacts'}")
os.environ.setdefault("FLYWHEEL_DATA", str(DATA_DIR))
os.environ.setdefault("FLYWHEEL_ARTIFACTS", ARTIFACTS_URL)

# Engines that this installation serves its editions from, and the base model they hold.
ENGINE_STANDARD_URL = env.str("FLYWHEEL_ENGINE_STANDARD", default="http://127.0.0.1:8011")
ENGINE_HIGHSPEED_URL = env.str("FLYWHEEL_ENGINE_HIGHSPEED", default="http://127.0.0.1:8012")
ENGINE_ROLLOUT_URL = env.str("FLYWHEEL_ENGINE_ROLLOUT", default=ENGINE_STANDARD_URL)
BASE_MODEL_NAME = env.str("FLYWHEEL_BASE_MODEL_NAME", default="pocket")
BASE_MODEL_PATH = env.str("FLYWHEEL_BASE_MODEL_PATH", default=str(BASE_DIR / "models" / "pocket" / "weights"))
ADAPTERS_DIR = Path(env.str("FLYWHEEL_ADAPTERS", default=str(DATA_DIR / "adapters")))
os.environ.setdefault("FLYWHEEL_ADAPTERS", str(ADAPTERS_DIR))

WORKER_SLOTS = {
    "eval": env.int("FLYWHEEL_SLOTS_EVAL", default=1),
    "rollout": env.int("FLYWHEEL_SLOTS_ROLLOUT", default=1),
    "train": env.int("FLYWHEEL_SLOTS_TRAIN", default=1),
    # Imports and the like on the web side, beside the anonymization of captures.
    "chores": env.int("FLYWHEEL_SLOTS_CHORES", default=1),
}
SPOOL_DIR = DATA_DIR / "spool"
GATEWAY_MAX_BODY_BYTES = env.int("FLYWHEEL_GATEWAY_BODY_BYTES", default=4 * 1024 * 1024)
# Limits of a key that has none of its own, per gateway process.
GATEWAY_REQUESTS_PER_MINUTE = env.int("FLYWHEEL_GATEWAY_REQUESTS_PER_MINUTE", default=30_000)
GATEWAY_TOKENS_PER_MINUTE = env.int("FLYWHEEL_GATEWAY_TOKENS_PER_MINUTE", default=20_000_000)
# Whether external endpoints may lie on private networks and on this machine.
PRIVATE_ENDPOINTS = env.bool("FLYWHEEL_PRIVATE_ENDPOINTS", default=True)
GATEWAY_IN_FLIGHT = env.int("FLYWHEEL_GATEWAY_IN_FLIGHT", default=512)
RAW_TTL_HOURS = env.int("FLYWHEEL_RAW_TTL_HOURS", default=72)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("FLYWHEEL_LOG_LEVEL", default="INFO")},
    "loggers": {
        # Presidio and spaCy log the text they look at when asked for more than warnings.
        "presidio-analyzer": {"level": "ERROR"},
        "httpx": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        # One line per task would drown what matters; arguments must never be logged.
        "celery": {"level": "WARNING"},
    },
}
