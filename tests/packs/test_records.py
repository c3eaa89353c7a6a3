from artifacts import ArtifactStore
from domain.contracts import FamilyCheck
from packs.records import checked_families, last_check, last_checks, record_check
from packs.starter import PACK

CHECK = FamilyCheck(name="tool_call", pack="starter", tasks=3, checked_at="2026-01-01T00:00:00+00:00")


def test_the_last_check_of_a_family_wins(store: ArtifactStore) -> None:
    record_check(store, CHECK)
    record_check(store, CHECK.model_copy(update={"tasks": 5}))

    assert last_check(store, "tool_call") == CHECK.model_copy(update={"tasks": 5})
    assert set(last_checks(store)) == {"tool_call"}


def test_a_family_that_was_never_checked_has_no_record(store: ArtifactStore) -> None:
    assert last_check(store, "tool_call") is None
    assert last_checks(store) == {}


def test_every_installed_family_is_listed_checked_or_not(store: ArtifactStore) -> None:
    record_check(store, CHECK)

    rows = checked_families(store, {"starter": PACK})

    assert [row.family for row in rows] == list(PACK.families)
    assert {row.family.name: row.check for row in rows if row.check} == {"tool_call": CHECK}


def test_a_record_of_a_pack_that_is_gone_is_kept_but_not_listed(store: ArtifactStore) -> None:
    record_check(store, CHECK.model_copy(update={"name": "chess", "pack": "games"}))

    assert "chess" in last_checks(store)
    assert all(row.check is None for row in checked_families(store, {"starter": PACK}))


def test_a_record_that_is_damaged_counts_as_none(store: ArtifactStore) -> None:
    store.ref_set("packs/checks/tool_call", store.put_json({"name": "tool_call"}))

    assert last_check(store, "tool_call") is None
