"""Texts for the pictures: what a shop's customers ask, answers that people have judged, a suite, a table."""

from typing import Any

CRITERIA = ["It answers what was asked.", "It names the date, the sum or the number that the customer needs."]
# Question, an answer that people pass, one that they fail.
_TALKS = (
    ("When does the shop open on Sundays?", "On Sundays we open at 10:00 and close at 16:00.",
     "We are open on most days of the week, so do come by and see us."),
    ("How long may I return a jacket?", "You may return it within 30 days after delivery.",
     "Returns are possible for some time after delivery, as our terms explain."),
    ("What does delivery to Norway cost?", "Delivery to Norway costs 12 euros.",
     "That depends on many things, so please have a look at the order page."),
    ("How many parcels were sent for order O-4411?", "Order O-4411 left in 2 parcels.",
     "I am not sure how many there were for order O-4411."),
    ("When was my refund paid?", "It was paid on 14 May 2026 to the card you used.",
     "It has been paid, and the bank should have it by now."),
    ("Which voucher did I use?", "You used voucher 8812 on this order.", "You used one of our vouchers."),
    ("How long is the guarantee on the kettle?", "The guarantee on the kettle is 24 months.",
     "The kettle has our usual guarantee."),
    ("What is the fee for a late payment?", "The fee is 5 euros for each reminder.",
     "There may be a fee for each reminder that we have to send to you."),
    ("Until when can I change the address?", "Until 18:00 on the day before the parcel leaves.",
     "Please change it as soon as you can, before the parcel leaves our house."),
    ("Is the blue lamp in stock?", "Yes, we have it in our shop in the city.",
     "No idea about lamp 77, please look it up."),
    ("How heavy is the parcel?", "The parcel weighs 3 kg.",
     "It is a rather heavy parcel, as far as I can see."),
    ("How many points do I have?", "You have 240 points.", "You have points, thank you for asking us."),
    ("When does the sale end?", "The sale ends on 31 August.",
     "The sale goes on for a while yet, and we would be glad to see you."),
    ("How many beds does the guest house have?", "It has 14 beds in 6 rooms.", "It has many beds."),
    ("What is the phone number of the shop?", "You reach us at 044 310 22 90.",
     "Our phone number is on the page that is named contact, at the very top."),
    ("Which size do I need at 180 cm?", "At 180 cm size 52 fits.", "A large size should fit you well."),
)  # fmt: skip
CATALOGUE = """id,input,expected,family,tags
opens,When does the shop open on Sundays?,10:00,opening,season=summer
returns,How long may I return a jacket?,30 days,returns,season=summer
norway,What does delivery to Norway cost?,12,delivery,season=winter
norway,What does delivery to Norway cost by night?,19,delivery,season=winter
kettle,How long is the guarantee on the kettle?,24 months,guarantee,season=winter
,,,,
points,How many points do I have?,,points,season=winter
"""


def gold_answers() -> list[dict[str, Any]]:
    return [
        {"question": question, "answer": answer, "passes": passes, "source": f"shop-{number}"}
        for number, (question, good, bad) in enumerate(_TALKS)
        for answer, passes in ((good, True), (bad, False))
    ]


def talk_tasks(*, second: bool) -> list[dict[str, Any]]:
    """The suite's first version, or its second: one case is gone, one is new, one asks for something else."""
    rows = [
        _task(f"shop-{number}", question, good, "opening" if "open" in question else "orders")
        for number, (question, good, _) in enumerate(_TALKS[:8])
    ]
    if second:
        rows[1]["reference"] = "You may return it within 60 days after delivery."
        rows[1]["tags"] = {"terms": "2026-06"}
        del rows[2]
        rows.append(_task("shop-11", _TALKS[11][0], _TALKS[11][1], "orders"))
    return rows


def _task(key: str, question: str, answer: str, family: str) -> dict[str, Any]:
    return {
        "id": key,
        "family": family,
        "messages": [{"role": "user", "content": question}],
        "verifier": {"kind": "similarity", "params": {"metric": "rouge_l", "threshold": 0.6}},
        "reference": answer,
        "source": key,
    }
