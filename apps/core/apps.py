from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "apps.core"
    label = "core"
    verbose_name = "Core"

    def ready(self) -> None:
        from apps.core.registries import PeriodicTask, periodic_tasks

        periodic_tasks.append(PeriodicTask("core.units_pump", 1.0))
        periodic_tasks.append(PeriodicTask("core.units_reap", 5.0))
