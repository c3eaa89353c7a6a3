"""A shop: prices with a bulk discount, a cart, shipping."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    bulk, cut, tax = rng.randint(5, 12), rng.choice((5, 8, 10, 12, 15)), rng.choice((7, 10, 19, 20, 21))
    free, flat, extra = rng.randint(50, 120) * 100, rng.randint(3, 9) * 100, rng.randint(1, 4) * 100
    coupon = rng.choice(("SAVE", "SPRING", "HELLO")) + str(rng.randint(5, 30))
    files = {
        "shop/__init__.py": '"""A small shop. All amounts are in cents."""\n',
        "shop/pricing.py": f'''"""Prices of lines."""

BULK_FROM = {bulk}
BULK_PERCENT = {cut}
TAX_PERCENT = {tax}


def line_total(price, quantity):
    """Price of one line; from BULK_FROM pieces on with the bulk discount, rounded down."""
    if quantity < 0:
        raise ValueError("a quantity cannot be negative")
    total = price * quantity
    if quantity >= BULK_FROM:
        total -= total * BULK_PERCENT // 100
    return total


def with_tax(net):
    """Net plus tax, rounded half up to a cent."""
    return net + (net * TAX_PERCENT + 50) // 100
''',
        "shop/cart.py": f'''"""The cart of one customer."""

from shop.pricing import line_total, with_tax

COUPONS = {{"{coupon}": {cut + 3}}}


class Cart:
    def __init__(self):
        self.lines = {{}}
        self.percent = 0

    def add(self, name, price, quantity=1):
        """More of the same name at the same price is one line."""
        key = (name, price)
        self.lines[key] = self.lines.get(key, 0) + quantity
        return self

    def remove(self, name):
        """All lines of that name; KeyError when there is none."""
        found = [key for key in self.lines if key[0] == name]
        if not found:
            raise KeyError(name)
        for key in found:
            del self.lines[key]
        return self

    def apply(self, code):
        """The best coupon counts, not the last one."""
        self.percent = max(self.percent, COUPONS.get(code, 0))
        return self

    def net(self):
        total = sum(line_total(price, count) for (name, price), count in self.lines.items())
        return total - total * self.percent // 100

    def gross(self):
        return with_tax(self.net())


def summary(entries):
    """Names and total quantities of (name, price, quantity) entries, by name."""
    found = {{}}
    for name, price, quantity in entries:
        found[name] = found.get(name, 0) + quantity
    return sorted(found.items())
''',
        "shop/shipping.py": f'''"""Shipping by value and weight."""

FREE_FROM = {free}
FLAT = {flat}
PER_KILO = {extra}


def shipping(net, grams):
    """Nothing from FREE_FROM on; else a flat price and something for each started kilo beyond the first."""
    if net >= FREE_FROM:
        return 0
    kilos = max(1, -(-grams // 1000))
    return FLAT + (kilos - 1) * PER_KILO
''',
    }
    bugs = (
        Bug(
            "shop/pricing.py",
            "quantity >= BULK_FROM",
            "quantity > BULK_FROM",
            f"Customers who buy exactly {bulk} pieces do not get the bulk discount.",
        ),
        Bug(
            "shop/pricing.py",
            "(net * TAX_PERCENT + 50) // 100",
            "net * TAX_PERCENT // 100",
            "Totals with tax are sometimes one cent too low.",
        ),
        Bug(
            "shop/pricing.py",
            "total -= total * BULK_PERCENT // 100",
            "total -= price * BULK_PERCENT // 100",
            "The bulk discount is far too small for large orders.",
        ),
        Bug(
            "shop/cart.py",
            "self.lines.get(key, 0) + quantity",
            "quantity",
            "Adding the same product twice keeps only the second quantity.",
        ),
        Bug(
            "shop/cart.py",
            "max(self.percent, COUPONS.get(code, 0))",
            "COUPONS.get(code, 0)",
            "A wrong coupon code typed after a good one takes the discount away.",
        ),
        Bug(
            "shop/cart.py",
            "key = (name, price)",
            "key = (name, 0)",
            "Carts show a total of zero for everything.",
        ),
        Bug(
            "shop/cart.py",
            "found.get(name, 0) + quantity",
            "found.get(name, 0) + 1",
            "The summary counts entries and not pieces.",
        ),
        Bug(
            "shop/shipping.py",
            "net >= FREE_FROM",
            "net > FREE_FROM",
            f"An order of exactly {free} cents still pays for shipping.",
        ),
        Bug(
            "shop/shipping.py",
            "-(-grams // 1000)",
            "grams // 1000",
            "Parcels of a bit more than a whole number of kilos are charged too little.",
        ),
    )
    names = ("pen", "mug", "bag", "lamp")

    def pieces(r: Random) -> int:
        return r.choice((bulk, bulk - 1, r.randint(1, 3 * bulk)))

    def cart(r: Random) -> str:
        adds = "".join(
            f".add({r.choice(names[:3])!r}, {r.choice((199, 250, 999))}, {pieces(r)})"
            for _ in range(r.randint(2, 4))
        )
        return f"Cart(){adds}"

    checks = (
        Check(
            "line_total",
            "from shop.pricing import line_total",
            lambda r: f"line_total({r.randint(99, 2999)}, {pieces(r)})",
        ),
        Check("with_tax", "from shop.pricing import with_tax", lambda r: f"with_tax({r.randint(1, 9999)})"),
        Check("net", "from shop.cart import Cart", lambda r: f"{cart(r)}.net()"),
        Check("gross", "from shop.cart import Cart", lambda r: f"{cart(r)}.apply('{coupon}').gross()"),
        Check(
            "coupons",
            "from shop.cart import Cart",
            lambda r: f"{cart(r)}.apply('{coupon}').apply('X{r.randint(1, 99)}').net()",
        ),
        Check(
            "remove",
            "from shop.cart import Cart",
            lambda r: f"{cart(r)}.add('lamp', {r.randint(100, 900)}).remove('lamp').net()",
        ),
        Check(
            "summary",
            "from shop.cart import summary",
            lambda r: (
                f"summary({[(r.choice(names), r.randint(1, 9) * 50, r.randint(1, 5)) for _ in range(4)]})"
            ),
        ),
        Check(
            "shipping",
            "from shop.shipping import shipping",
            lambda r: (
                f"shipping({r.choice((free, free - 1, r.randint(100, free)))}, {r.randint(1, 60) * 250})"
            ),
        ),
        Check(
            "negative", "from shop.pricing import line_total", lambda r: f"line_total({r.randint(1, 99)}, -1)"
        ),
    )
    return Repository("shop", "a small shop (all amounts in cents)", files, bugs, checks)
