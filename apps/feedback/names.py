"""Which words look like a person's name, and which capitalised words never are one.

A small statistical tagger both misses short names and takes firms for people. These lists are
the two corrections: given names that make a pair of words a person, and words of documents and
trade that make a found "person" something else. Leaves out judging whole texts (``detectors``).
"""

import re
from itertools import pairwise

_GIVEN = """
aaron abdul abigail adam adele adrian agnes ahmed aisha alan albert alejandro alex alexander
alexandra ali alice alicia amanda amelia amina amir amy ana andrea andreas andrew angela anita ann
anna anne annika anthony antonio anya arthur astrid barbara beatrice ben benjamin bernard beth
bianca birgit bjorn brandon brenda brian bruce bruno camille carl carla carlos carmen carol caroline
catherine cecilia charles charlotte chen chloe chris christian christina christine christopher clara
claire claudia colin craig cynthia daniel daniela david deborah denise dennis diana diego dieter
dmitri donald donna doris dorothy edith eduardo edward elena elias elisa elizabeth ella ellen emily
emma eric erik erika esther eva evelyn fatima felix fernando fiona florian frances francesca
francesco frank franz fred frida gabriel gabriela george georg gerald gerhard giovanni giulia gloria
gregory greta guido gunther gustav hans hannah harald harold hassan heather heidi heinrich helen
helena helga henri henry hiroshi hugo ian ibrahim ida igor ingrid irene iris irina isabel isabella
ivan jack jacob jacqueline jake james jan jane janet jason javier jean jeff jeffrey jennifer jeremy
jessica jill joan joe johan johanna john jonas jonathan jorge jose josef joseph joshua juan juanita
judith julia julian julie jurgen karen karim karin karl kate katherine kathleen katja keith kelly
kenneth kenji kevin klaus kurt larissa lars laura lauren leila lena leo leon leonard leonie liam
lina linda lisa lorenzo louis louise luca lucas lucia lucy luis luisa lukas magda maja manuel marc
marcel marco marcus margaret maria marie marina mario mark markus marta martin martina mary matteo
matthew matthias max megan mehmet mei melanie melissa mia michael michelle miguel mikhail mila
mohamed mohammed monica monika muhammad nadia nancy natalia natalie nathan nicholas nicola nicole
niklas nils nina noah nora oleg olga oliver olivia omar oscar otto pablo pamela patricia patrick
paul paula pedro peter petra philip pierre priya rachel rafael rahul ralf ramon raul raymond rebecca
renate ricardo richard rita robert roberto roger roland roman ronald rosa ruth ryan sabine samantha
samuel sandra sanjay sara sarah scott sean sebastian sergei sharon shirley silvia simon sofia sonia
sophia sophie stefan stefanie stephanie stephen steven stuart susan susanne sven svetlana sylvia
tamara tanja tatiana teresa theo theresa thomas tim tom tomas tony ursula uwe valentina valerie vera
veronica victor victoria vikram vincent virginia vladimir walter wanda wei wendy werner wilhelm
william wolfgang xavier yasmin yusuf yuki yvonne zoe
"""
GIVEN_NAMES = frozenset(_GIVEN.split())

# Surnames that a dictionary holds too, as words or for somebody famous.
_SURNAMES = """
adams allen anderson armstrong bailey baker barber bauer bell bennett berg bishop brown burke burns
butler campbell carter chapman clark collins cook cooper cox cruz davis dean diaz edwards ellis evans
fischer fisher fleming fletcher ford foster fox franklin freeman garcia gardner gibson gonzalez gordon
graham gray green griffin hall hamilton hansen harper harris harrison harvey hayes henderson hernandez
hill holmes howard hughes hunter jackson jensen jenkins johnson johnston jones kaplan keller kelley
kennedy king klein knight koch larsen lawrence lee lewis lincoln long lopez marshall martinez mason
mendoza meyer miller mitchell moore morgan morris muller murphy murray nelson newton nguyen nielsen
novak olsen owens palmer parker patel pearson perez perkins perry peterson phillips porter powell
powers ramirez reed reynolds rice richards richardson rivera roberts robertson robinson rodriguez
rogers ross rossi russell sanchez sanders schmidt schneider schulz shaw silva simmons simpson singh
smith snyder spencer stevens stewart stone sullivan taylor thompson torres tucker turner tyler wagner
walker wallace wang ward warren washington watson weaver webb weber wells wheeler white williams
wilson wolf wong wright young zhang
"""
SURNAMES = frozenset(_SURNAMES.split())

# Words of documents, money, calendars and trade: a "person" that ends or begins with one is none.
_DOCUMENT_WORDS = """
bank bar car cafe church company council court dental federal first high intelligence language learning
machine ministry museum new point prime second sports state street studio third united visual web world
project plan gold premium basic system model assistant error test write function string array json
account accounts address amount answer approved attn balance bank bill billed billing calendar card
case charge charged client company contact credit currency customer date dear debit delivery
department dept description discount document due email false fee field fields from goods gross
hello help hi id iban info invoice invoices issued item items json key kind regards list london mail
memo message net no note null number office open order orders paid pay payable payment payments
phone please po price product purchase question quantity quote rate re receipt ref reference refund
regarding reply report return sale sales sent served service shipping status subject subtotal sum
support tax team tel thanks ticket to tool total transfer true unit unknown update urgent user vat
vendor yes jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june
july august september october november december monday tuesday wednesday thursday friday saturday
sunday eur usd gbp chf sek nok dkk jpy cny inr aud cad pln czk ag gmbh inc ltd llc plc corp
corporation sa srl bv ab oy kg co group holding holdings partners limited airlines bakery books
bookstore bottling brewery builders cables capital chemicals cleaning clinic coffee consulting
cooling courier dairy deli design electric electrics electronics energy engineering equipment
express fabrics farm farms finance fish fisheries flowers foods freight fruit furniture garage
garden gardens gas glass global granite grocery hardware harbor health hospital hotel house
industries institute instruments insurance international italia kitchen labs lighting limousine
logistics machines market marketing markets media medical metals motors music network networks oil
optics organics paints paper parts pharmacy pharma plastics plumbing power press print printing
produce properties rail records rentals repair restaurant school seafood services shop software
solar solutions steel storage store stores studio studios supplies supply systems taxi tech
technologies technology telecom textiles timber tools tours toys trade trading transport travel
trucking university valley vision warehouse water wholesale wines wood works workshop python java
javascript django linux windows google microsoft amazon github docker excel word openai alpha beta
gamma delta north south east west alpine amber blue bright cedar coastal copper copperline crystal
golden metro orbit pine polar quick rapid riverside silver summit urban velvet
"""
NOT_A_NAME = frozenset(_DOCUMENT_WORDS.split())

# What stands before a name in letters, mails and receipts.
_CUES = (
    r"dear|hi|hello|hey|mr\.?|mrs\.?|ms\.?|dr\.?|prof\.?|herr|frau|madame|monsieur|se[nñ]ora?"
    r"|(?:my|his|her|their)\s+name\s+is|this\s+is|i\s+am|i'm|signed(?:\s+by)?|served\s+by|sold\s+by|prepared\s+by"
    r"|approved\s+by|attn\.?:?|attention:|c/o|contact:?|customer:?|cardholder:?|name:|from:|to:|cc:|bcc:"
    r"|(?:kind|best|warm)\s+regards,?|regards,?|sincerely,?|cheers,?|thanks,?|yours,?"
)
_WORD = r"[A-ZÀ-ÖØ-Þ](?:[a-zà-öø-ÿ]+|\.)(?:['’\-][A-ZÀ-ÖØ-Þ]?[a-zà-öø-ÿ]+)*"
CUED_NAME = re.compile(rf"(?<!\w)(?i:{_CUES})[ \t]*\n?[ \t]*(?P<name>{_WORD}(?:[ \t]+{_WORD}){{0,2}})(?!\w)")
# Two name-like words after a small word: perhaps a person, perhaps a firm.
MAYBE_NAME = re.compile(
    rf"(?<!\w)(?:for|of|with|by|and|to|from|as|is|was|,)[ \t]+"
    rf"(?P<name>{_WORD}[ \t]+{_WORD})(?![\w@]|[ \t]+[A-Z])"
)
NAME_PAIR = re.compile(rf"(?<![\w<@.\-])(?P<name>{_WORD}(?:[ \t]+{_WORD}){{1,2}})(?![\w@])")
# Two words alone on a line or between separators, as under a letter, on a receipt, in a ledger; or
# in front of what people do.
LONE_NAME = re.compile(
    rf"(?m)(?:^|(?<=[/|;]))[ \t]*(?P<name>{_WORD}[ \t]+{_WORD})[ \t]*"
    r"(?:$|(?=[/|;])|(?=\b(?:asks?|asked|bought|calls?|called|gets?|got|needs?|ordered|orders|owes?|owed|paid|pays"
    r"|returned|returns|said|says|sent|told|wants?|wanted|writes|wrote)\b))"
)

# What stands around the word of a label, as in "Queue: one of these": the start of a line, perhaps
# with the marks of a list or of Markdown, or the end of a sentence; and a colon.
_LABEL_BEFORE = re.compile(
    r"(?:^|[\n!?]|(?<!\b[DM]r)(?<!\bMrs)(?<!\bMs)(?<!\bProf)\.)[\s>*_#•\-]*(?:\d{1,3}[.)]\s*)?[*_]*$"
)
_LABEL_AFTER = re.compile(r"[*_]{0,2}[ \t]?:")


def is_label(text: str, start: int, end: int) -> bool:
    """Whether one word stands where a label does. Speakers stand there too: ``Queue:`` and ``Anna:``."""
    return (
        not re.search(r"\s", text[start:end])
        and _LABEL_AFTER.match(text, end) is not None
        and _LABEL_BEFORE.search(text[max(0, start - 20) : start]) is not None
    )


def widened(text: str, start: int) -> int:
    """Where a name begins whose last word stands at ``start``: a name-like word before it belongs to it."""
    before = re.search(rf"(?<![\w<@.\-])({_WORD})[ \t]+$", text[max(0, start - 40) : start])
    return start - len(before[0]) if before and could_be_name(before[1]) else start


def plain(word: str) -> str:
    return word.strip(".,;:!?\"'()[]").casefold()


def could_be_name(text: str) -> bool:
    """Whether every word is written like a name and none belongs to documents or trade."""
    words = text.split()
    return bool(words) and all(
        word[:1].isupper() and not any(c.isdigit() for c in word) and plain(word) not in NOT_A_NAME
        for word in words
        if word.casefold() not in {"von", "van", "de", "der", "da", "di", "del", "la", "le", "bin", "al"}
    )


def has_given_name(text: str) -> bool:
    return any(plain(word) in GIVEN_NAMES for word in text.split())


def names_somebody(identifier: str) -> bool:
    """Whether an id such as ``karen_lewis`` or ``Order of Karen Lewis`` holds a given name and another."""
    words = [word.casefold() for word in re.findall(r"[^\W\d_]+", identifier)]
    return any(
        first in GIVEN_NAMES and len(second) > 2 and second not in NOT_A_NAME
        for first, second in pairwise(words)
    )
