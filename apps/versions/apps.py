from django.apps import AppConfig


class VersionsConfig(AppConfig):
    name = "apps.versions"
    label = "versions"
    verbose_name = "Versions"

    def ready(self) -> None:
        from apps.core import registries
        from apps.versions import panels, services

        registries.project_made.append(
            lambda project, actor: services.installation_base_register(project=project, by=actor)
        )
        registries.nav_counts["versions"] = panels.nav_count
        versions_first = "Compare the new version with the one in service on a suite of held-out cases."
        canary_first = "Release it to a few per cent of traffic; the gate promotes it or rolls it back."
        registries.loop_stages += [
            registries.Stage(60, "Versions", panels.versions_stage, versions_first),
            registries.Stage(70, "Canary", panels.canary_stage, canary_first),
        ]
        registries.personal_tasks.append(registries.PersonalTask(panels.waiting_rows))
        registries.periodic_tasks.append(registries.PeriodicTask("versions.releases_tick", 2.0))
        registries.periodic_tasks.append(registries.PeriodicTask("versions.engines_reconcile", 1.0))
