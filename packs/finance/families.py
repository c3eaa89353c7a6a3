"""The finance pack: its families and the pack object."""

from pathlib import Path

from packs.finance import (
    bank,
    extraction,
    filings,
    invoices,
    ledgers,
    ratios,
    relations,
    review,
    schedules,
    small,
)
from packs.registry import PackFamily
from packs.seeded import SeededFamily, SeededPack

_FAMILIES = (
    SeededFamily(
        PackFamily(
            "balance_check",
            "Balance check",
            "By how much assets differ from liabilities and equity. Simple.",
            ("numeric",),
        ),
        small.balance_check,
        max_tokens=24,
    ),
    SeededFamily(
        PackFamily(
            "roll_forward",
            "Roll-forward",
            "Opening, additions, disposals, closing: the missing one. Simple.",
            ("numeric",),
        ),
        small.roll_forward,
        max_tokens=24,
    ),
    SeededFamily(
        PackFamily(
            "amount_reading",
            "Amounts in local notation",
            "One amount with separators, sign and unit, given as a plain number. Simple.",
            ("numeric",),
        ),
        small.amount_reading,
        max_tokens=32,
    ),
    SeededFamily(
        PackFamily(
            "income_statement",
            "Income statement extraction",
            "Figures of an income statement in five layouts, to full units and the right sign.",
            ("accounting",),
        ),
        extraction.income_statement_extraction,
        max_tokens=320,
    ),
    SeededFamily(
        PackFamily(
            "balance_sheet",
            "Balance sheet extraction",
            "Figures of a balance sheet in five layouts, to full units, with their relations.",
            ("accounting",),
        ),
        extraction.balance_sheet_extraction,
        max_tokens=320,
    ),
    SeededFamily(
        PackFamily(
            "bank_statement",
            "Bank statement extraction",
            "Entries of a bank statement with ISO dates and signed amounts.",
            ("table",),
        ),
        bank.bank_statement,
        max_tokens=700,
    ),
    SeededFamily(
        PackFamily(
            "invoice_lines",
            "Invoice with lines",
            "All lines and totals of an invoice, with the relations between them.",
            ("weighted", "table", "accounting"),
        ),
        invoices.invoice_lines,
        max_tokens=600,
    ),
    SeededFamily(
        PackFamily("vat_summary", "Tax by rate", "Net and tax of an invoice by tax rate.", ("table",)),
        invoices.vat_summary,
        max_tokens=320,
    ),
    SeededFamily(
        PackFamily(
            "broken_relation",
            "Broken relation",
            "Which total of a statement does not follow from its items, and what it must be.",
            ("json_fields",),
        ),
        relations.broken_relation,
        max_tokens=160,
    ),
    SeededFamily(
        PackFamily(
            "reconciliation",
            "Reconciliation",
            "Bank against ledger: entries without counterpart and pairs with another amount.",
            ("weighted", "table"),
        ),
        ledgers.reconciliation,
        max_tokens=500,
    ),
    SeededFamily(
        PackFamily("ratio", "Ratios", "Margins, liquidity and leverage from a statement.", ("numeric",)),
        ratios.ratio,
        max_tokens=64,
    ),
    SeededFamily(
        PackFamily(
            "receivables_ageing",
            "Receivables ageing",
            "Open invoices summed up by days past due.",
            ("accounting",),
        ),
        schedules.ageing,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "depreciation_schedule",
            "Depreciation schedule",
            "A straight-line schedule by calendar year.",
            ("table",),
        ),
        schedules.depreciation,
        max_tokens=400,
    ),
    SeededFamily(
        PackFamily(
            "statement_review",
            "Statement review",
            "Extract figures, find the broken total, compute the equity ratio, judge the covenant.",
            ("graph", "accounting", "json_fields", "numeric", "exact"),
            parts=("balance_sheet", "broken_relation", "ratio"),
        ),
        review.statement_review,
        max_tokens=600,
    ),
    SeededFamily(
        PackFamily(
            "month_end",
            "Month end",
            "Close the bank, reconcile it with the ledger, adjust both, say whether they agree.",
            ("graph", "numeric", "table", "accounting", "exact"),
            parts=("roll_forward", "reconciliation"),
        ),
        review.month_end,
        max_tokens=800,
    ),
    SeededFamily(
        PackFamily(
            "filing_review",
            "Filing review",
            "A filing read with tools: extract, check, locate what deviates, extract again, submit.",
            ("accounting",),
            environment="documents",
            parts=("income_statement", "balance_sheet", "broken_relation"),
        ),
        filings.filing,
        max_tokens=400,
    ),
    SeededFamily(
        PackFamily(
            "invoice_approval",
            "Invoice approval",
            "Order, delivery and invoice compared: deviating lines, payable amount, decision.",
            ("graph", "table", "numeric", "exact"),
            parts=("invoice_lines",),
        ),
        review.invoice_approval,
        max_tokens=500,
    ),
)

SEEDED = SeededPack("finance", _FAMILIES)
PACK = SEEDED.pack(
    title="Finance",
    description="Statements, relations between figures, reconciliation, ratios, and reviews made of them.",
    folder=str(Path(__file__).parent),
)
