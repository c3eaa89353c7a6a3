from django.apps import AppConfig


class FeedbackConfig(AppConfig):
    name = "apps.feedback"
    label = "feedback"
    verbose_name = "Feedback"

    def ready(self) -> None:
        from apps.core import registries
        from apps.feedback import calibrations, overview, pack_families, verify_units

        registries.unit_handlers["verify_batch"] = registries.UnitHandler(
            finished=verify_units.finished, failed=verify_units.failed
        )
        registries.unit_handlers[calibrations.UNIT] = registries.UnitHandler(
            finished=calibrations.calibration_finished, failed=calibrations.calibration_failed
        )
        registries.unit_handlers["pack_check"] = registries.UnitHandler(
            finished=pack_families.packs_check_finished, failed=pack_families.packs_check_failed
        )
        registries.periodic_tasks.append(registries.PeriodicTask("feedback.captures_sweep", 5.0))
        registries.nav_counts["failures"] = overview.nav_count
        registries.loop_stages += overview.STAGES
        registries.personal_tasks.append(registries.PersonalTask(overview.personal_tasks))
