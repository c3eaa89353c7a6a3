from django.apps import AppConfig


class EvalsConfig(AppConfig):
    name = "apps.evals"
    label = "evals"
    verbose_name = "Evals"

    def ready(self) -> None:
        from apps.core import registries
        from apps.evals import panels
        from apps.evals.selectors.gates import gates_required
        from apps.evals.services import captures, import_units
        from apps.evals.services.batches import eval_batch_failed, eval_batch_finished, eval_batch_is_held
        from apps.evals.services.probes import probes_hear
        from apps.evals.services.runs import eval_batch_renewed

        registries.unit_handlers["eval_batch"] = registries.UnitHandler(
            finished=eval_batch_finished,
            failed=eval_batch_failed,
            is_held=eval_batch_is_held,
            renewed=eval_batch_renewed,
        )
        registries.unit_handlers[import_units.UNIT] = registries.UnitHandler(
            finished=lambda unit, result: None,  # all of it is stored by the unit itself, once
            failed=import_units.suite_import_failed,
        )
        registries.unit_runners[import_units.UNIT] = import_units.suite_import_work
        registries.unit_handlers[captures.UNIT] = registries.UnitHandler(
            finished=captures.results_capture_finished, failed=captures.results_capture_failed
        )
        registries.unit_runners[captures.UNIT] = captures.results_capture_work
        registries.nav_counts["evals"] = panels.nav_count
        registries.personal_tasks.append(registries.PersonalTask(panels.waiting_rows))
        registries.periodic_tasks.append(registries.PeriodicTask("evals.probes_tick", 30.0))
        registries.periodic_tasks.append(registries.PeriodicTask("evals.gates_tick", 2.0))
        registries.required_gates.append(gates_required)
        registries.release_listeners.append(registries.ReleaseListener(heard=probes_hear))
        registries.periodic_tasks.append(registries.PeriodicTask("evals.figures_tick", 60.0))
        registries.periodic_tasks.append(registries.PeriodicTask("evals.suite_imports_sweep", 300.0))
