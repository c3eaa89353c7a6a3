from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "apps.training"
    label = "training"
    verbose_name = "Training"

    def ready(self) -> None:
        from apps.core import registries
        from apps.training import overview, services

        registries.unit_handlers["rollout_batch"] = registries.UnitHandler(
            finished=services.rollout_batch_finished, failed=services.rollout_batch_failed
        )
        registries.unit_handlers["train_segment"] = registries.UnitHandler(
            finished=services.train_segment_finished, failed=services.train_segment_failed
        )
        registries.nav_counts["training"] = overview.nav_count
        first_step = "Train an adapter on the tasks of a family; start with a small run."
        registries.loop_stages.append(registries.Stage(50, "Training", overview.training_stage, first_step))
        registries.personal_tasks.append(registries.PersonalTask(overview.personal_tasks))
