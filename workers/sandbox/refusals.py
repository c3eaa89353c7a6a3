"""Why bwrap could not build a sandbox, and what a person can do about it."""

from pathlib import Path

_FIX_CONTAINER = (
    "A default container forbids nested sandboxes: start it with "
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined, or run the workers on the host."
)


def explain(said: str) -> tuple[str, str]:
    """(reason, fix) for bwrap's message ``said`` on this host."""
    said = said.splitlines()[-1][:200] if said else "bwrap said nothing"
    reason = f"The sandbox could not be built: {said}."
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            f"AppArmor keeps unprivileged programs from making user namespaces ({said}).",
            "Install the distribution's package bubblewrap with its AppArmor profile, or run "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0.",
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return (
            f"The kernel keeps unprivileged programs from making user namespaces ({said}).",
            "Run sysctl kernel.unprivileged_userns_clone=1.",
        )
    if _setting("user/max_user_namespaces") == "0":
        return (
            f"The host allows no user namespaces ({said}).",
            "Run sysctl user.max_user_namespaces=10000.",
        )
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return reason, _FIX_CONTAINER
    if said.startswith("not in force"):
        return (
            reason,
            "A protection is missing; check that /bin/sh is a POSIX shell and bwrap is 0.6 or newer.",
        )
    return reason, "Allow user namespaces for this user, or install the distribution's package bubblewrap."


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""
