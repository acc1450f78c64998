"""Settings: what an operator may change, each read once. docs in README, "Settings"."""

from __future__ import annotations

import secrets
import sys
from datetime import timedelta
from pathlib import Path

import dj_database_url
import dj_email_url
from cryptography.fernet import Fernet

from mira_site import datadir, embedded, env
from mira_site.errors import SettingError

BASE_DIR = Path(__file__).resolve().parent.parent
env.load(BASE_DIR / ".env")

# --- Where state lives, and the secrets kept there -------------------------------------------
MIRA_DATA_DIR = Path(env.text("MIRA_DATA_DIR", BASE_DIR / ".mira")).expanduser().resolve()
DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY_BYTES = 64
DATABASE_URL = env.text("DATABASE_URL", "")
REDIS_URL = env.text("REDIS_URL", "")
EMBEDS_POSTGRES, EMBEDS_REDIS = not DATABASE_URL, not REDIS_URL
# With managed services several machines share the secrets, so they must be given.
SECRET_KEY = env.text("SECRET_KEY", "") or datadir.secret(
    MIRA_DATA_DIR, "secret_key", lambda: secrets.token_urlsafe(SECRET_KEY_BYTES)
)
# The first encrypts, all decrypt; mira_site/crypto.py.
_given_keys = env.keys("FIELD_ENCRYPTION_KEYS")
HAS_GIVEN_KEYS = bool(_given_keys)
FIELD_ENCRYPTION_KEYS = _given_keys or [
    datadir.secret(
        MIRA_DATA_DIR, "field_encryption_key", lambda: Fernet.generate_key().decode("ascii")
    )
]
METRICS_TOKEN = env.text("METRICS_TOKEN", "")

# --- Network ---------------------------------------------------------------------------------
HOST = env.text("HOST", "127.0.0.1")
PORT = env.whole("PORT", 8000, low=1, high=65535)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
PUBLIC_URL = env.text(
    "PUBLIC_URL", ""
)  # https://mira.example.org; turns secure cookies and HSTS on
IS_HTTPS = PUBLIC_URL.startswith("https://")
if PUBLIC_URL and not PUBLIC_URL.startswith(("https://", "http://")):
    raise SettingError("PUBLIC_URL must start with https:// or http://.")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL.rstrip("/")] if PUBLIC_URL else []
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 60 * 60 * 24 * 60
SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^health/"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = IS_HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
TRUSTED_PROXIES = env.whole("TRUSTED_PROXIES", 0, low=0, high=5)
# Hosts that webhooks may call although they are private, and over plain http.
WEBHOOK_PRIVATE_HOSTS = env.words("WEBHOOK_PRIVATE_HOSTS")

# --- Apps ------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "mira_site",
    "mira_site.accounts",
    "mira_site.llm",
    "mira_site.webhooks",
    "memory",
    "toolbox",
    "conversations",
    "mira_site.admin.MiraAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "channels",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",  # files of the API page, ours to serve
]
MIDDLEWARE = [
    "mira_site.health.ProbesMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "mira_site.logconfig.RequestLogMiddleware",
    "mira_site.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "mira_site.isolation.IsolationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
ROOT_URLCONF = "mira_site.urls"
ASGI_APPLICATION = "mira_site.asgi.application"
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
            ],
        },
    },
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Database and Redis ----------------------------------------------------------------------
_embedded_urls = embedded.urls(MIRA_DATA_DIR)
DATABASES = {
    "default": dj_database_url.parse(
        DATABASE_URL or _embedded_urls.database_url,
        engine="mira_site.postgresql",
        conn_health_checks=True,
    )
}
# Under ASGI each request has a thread of its own, so connections are kept in a pool, not by thread.
DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
    "min_size": 1,
    "max_size": 20,
    "timeout": 10,
}
REDIS_URL = REDIS_URL or _embedded_urls.redis_url
REDIS_PREFIX = "mira:"
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            # The layer waits up to 5 s in one blocking read; redis-py gives up after 5 s by itself.
            "hosts": [{"address": REDIS_URL, "socket_timeout": 30}],
            "capacity": 500,
        },
    },
}
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
}

# --- Background work -------------------------------------------------------------------------
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://").replace(
    "?db=", "?virtual_host="
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "background"
CELERY_TASK_ROUTES = {"conversations.tasks.run_turn": {"queue": "turns"}}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 10,
    "socket_connect_timeout": 5,
    "retry_on_timeout": True,
    "visibility_timeout": 3600,
}
# Publishing waits at most about a second for Redis; a turn that could not be queued is swept up.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.3}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"

# --- Accounts --------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["mira_site.accounts.authentication.OneCheckBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SIGNUP = env.choice("SIGNUP", ("open", "invite", "closed"), "invite")
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "chat"
LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "mira_site.accounts.adapter.AccountAdapter"
ACCOUNT_FORMS = {"signup": "mira_site.accounts.forms.SignUpForm"}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_LOGIN_BY_CODE_ENABLED = True
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/5m/key",
    "signup": "20/m/ip",
    "reset_password": "20/m/ip,5/m/key",
}
try:
    vars().update(dj_email_url.parse(env.text("EMAIL_URL", "console:")))
except (KeyError, ValueError) as error:
    raise SettingError(
        "EMAIL_URL must look like smtp+tls://user:password@host:587 or console:."
    ) from error

# --- The model -------------------------------------------------------------------------------
ANTHROPIC_API_KEY = env.text("ANTHROPIC_API_KEY", "")
ANTHROPIC_BASE_URL = env.text("ANTHROPIC_BASE_URL", "")
MIRA_MODEL = env.text("MIRA_MODEL", "claude-sonnet-5-5")
MIRA_FAST_MODEL = env.text("MIRA_FAST_MODEL", "claude-haiku-5-5")
MIRA_BACKGROUND_MODEL = env.text("MIRA_BACKGROUND_MODEL", MIRA_MODEL)
# Models that people may choose for themselves, by tier; a tier that is not named has no choice.
MIRA_MODELS_ALLOWED = env.lists("MIRA_MODELS_ALLOWED", ("reply", "fast", "background"))
LLM_RETRY_BASE_S = 1.0

# --- API -------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "mira_site.accounts.authentication.ScopedTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "mira_site.problems.exception_handler",
    "DEFAULT_THROTTLE_RATES": {"token": "10/min", "token_account": "20/hour"},
    "NUM_PROXIES": TRUSTED_PROXIES,
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=90), "AUTO_REFRESH": False, "TOKEN_PREFIX": "mira_"}
SPECTACULAR_SETTINGS = {
    "TITLE": "MIRA",
    "DESCRIPTION": "A companion with one conversation for ever. Sign in by session cookie or "
    "`Authorization: Token …` from POST /api/v1/auth/token/. Errors are RFC 9457 problem details.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "TurnStatus": "conversations.models.Turn.Status",
        "SegmentStatus": "conversations.models.Segment.Status",
        "LinkAuthor": "memory.models.MemoryLink.Author",
        "FingerprintAuthor": "memory.models.Fingerprint.Author",
        "MergeAuthor": "memory.models.MemoryRevision.Author",
    },
}

# --- Language, time, files -------------------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT = MIRA_DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_MIMETYPES = {".webmanifest": "application/manifest+json"}

# --- Logs ------------------------------------------------------------------------------------
LOG_FORMAT = env.choice("LOG_FORMAT", ("console", "json"), "console")
LOGGING_CONFIG = "mira_site.logconfig.configure"
LOGGING = {"format": LOG_FORMAT, "colours": sys.stderr.isatty(), "cached": True}
