"""Sandboxes in containers. ``backend.DockerBackend`` is the door; the SDK is imported only there."""
