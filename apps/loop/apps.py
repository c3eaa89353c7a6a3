from django.apps import AppConfig


class LoopConfig(AppConfig):
    name = "apps.loop"
    label = "loop"
    verbose_name = "Loop"

    def ready(self) -> None:
        from apps.core.registries import PeriodicTask, periodic_tasks

        periodic_tasks.append(PeriodicTask("loop.turns_tick", 2.0))
