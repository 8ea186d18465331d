"""Kubernetes' quantities (`500m`, `1.5Gi`, `2e3`) as exact numbers, and back for people: pure."""

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([+-]?\d*\.?\d*)(?:([eE][+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?")

_SUFFIXES = {
    **{name: Decimal(1000) ** power for power, name in ((-3, "n"), (-2, "u"), (-1, "m"), (1, "k"), (2, "M"))},
    **{name: Decimal(1000) ** power for power, name in ((3, "G"), (4, "T"), (5, "P"), (6, "E"))},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", 1)},
}


def parse_quantity(raw: object) -> Decimal:
    """Read one; what the API server would never have written counts as nothing."""
    found = _QUANTITY.fullmatch(str(raw).strip()) if isinstance(raw, str | int | float) else None
    if found is None or not found[1].strip("+-."):
        return Decimal(0)
    return Decimal(f"{found[1]}{found[2] or ''}") * _SUFFIXES.get(found[3] or "", Decimal(1))


def say_amount(resource: str, amount: Decimal) -> str:
    """Say so much of a resource: cpu in cores, what is measured in bytes in Mi or Gi, anything else as a number."""
    if resource == "cpu":
        return f"{amount * 1000:.0f}m" if amount < 10 and amount % 1 else f"{amount.normalize():f}"
    if resource == "memory" or resource.endswith("storage") or resource.startswith("hugepages-"):
        size = amount / 1024**2
        return f"{size / 1024:.1f}Gi" if size >= 10 * 1024 else f"{size:.0f}Mi"
    return f"{amount.normalize():f}"
