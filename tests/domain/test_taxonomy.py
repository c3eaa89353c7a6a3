from domain.taxonomy import FAILURE_KINDS, SEVERITIES, kind_by_key


def test_each_kind_has_its_own_digit_and_slug() -> None:
    assert [kind.key for kind in FAILURE_KINDS] == list("123456789")
    assert len({kind.slug for kind in FAILURE_KINDS}) == 9


def test_severities_rise() -> None:
    assert [severity.rank for severity in SEVERITIES] == [1, 2, 3]


def test_a_digit_finds_its_kind_and_others_find_none() -> None:
    found = kind_by_key("4")

    assert found is not None
    assert found.slug == "wrong_format"
    assert kind_by_key("0") is None
