"""Composition root: settings, URLs, ASGI, Celery. The only place that knows how it is deployed."""
