from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "apps.gateway"
    label = "gateway"
    verbose_name = "Gateway"

    def ready(self) -> None:
        from apps.core.registries import PeriodicTask, periodic_tasks, routing_lags
        from apps.gateway.selectors import instances_behind

        periodic_tasks.append(PeriodicTask("gateway.spool_ingest", 1.0))
        routing_lags.append(instances_behind)
