"""What a person says of their own life: patterns of first-person sentences, by language.

Each captures `value`, and stands under the key of the fact it gives. A sentence may give several.
"""

from __future__ import annotations

import re

Personal = tuple[tuple[str, re.Pattern[str]], ...]

# Keys of personal facts, and whether one tells a taste rather than a fact.
TASTES = frozenset({"likes", "dislikes"})
PERSONAL = (
    "name", "birthday", "job", "home", "origin", "family", "pet", "own", "health", "likes",
    "dislikes", "plan", "past",
)  # fmt: skip

_UPPER = r"(?-i:[A-ZÀ-ÖØ-Þ])"
_NAMES = rf"{_UPPER}[\w’'-]*(?: {_UPPER}[\w’'-]*)*"
_STOP = r"(?:[.!?;](?!\w)|[\n,(]|$)"


def _patterns(*given: tuple[str, str]) -> Personal:
    return tuple((key, re.compile(rf"(?<!\w)(?:{one})", re.IGNORECASE)) for key, one in given)


_EN_REST = (
    r"(?P<value>[^\n,]+?)(?=\s+(?:because|but|so|since|although|while|when|whenever|if|and (?:i|we"
    rf"|my|our|he|she|they|it|works?|lives?|have|has|loves?))(?!\w)|\s*{_STOP})"
)
_EN_I = r"i(?:['’]ve| have| had)?(?: really| also| just| recently| finally| still| always| mostly)*"
_EN_AM = r"i(?:['’]m| am| was)(?: also| now| currently| still)*"
_EN_RELATION = (
    r"(?:wife|husband|partner|spouse|fianc[ée]e?|girlfriend|boyfriend|mother|mum|mom|father|dad"
    r"|parents|(?:(?:little|big|older|younger|twin|step|half)[ -]?)?(?:sister|brother)s?|sons?"
    r"|daughters?|kids?|children|child|baby|grand(?:mother|father|ma|pa|son|daughter)|aunt|uncle"
    r"|cousin|niece|nephew|best friend)"
)
_EN_PET = (
    r"(?:(?:dog|cat|puppy|kitten|rabbit|hamster|parrot|budgie|horse|pony|tortoise|turtle"
    r"|guinea pig|goldfish|snake|pet))s?"
)
_EN_PAST = (
    r"(?:went|visited|bought|sold|moved|started|finished|broke|met|got|made|saw|took|travell?ed|won"
    r"|lost|joined|left|graduated|married|divorced|quit|learn(?:ed|t)|ran|climbed|adopted|built"
    r"|wrote|read|attended|passed|failed|retired|attend|completed|celebrated|signed up|gave"
    r"|began|flew|drove|studied|worked|lived|painted|planted|gone|been to|taken|seen"
    r"|had(?= (?:an?|the|my|our|lunch|dinner|breakfast)(?!\w)))"
)

ENGLISH = _patterns(
    ("name", rf"my (?:full |first |last )?name(?:['’]s| is) (?P<value>{_NAMES})"),
    ("name", rf"(?:please )?call me (?P<value>{_NAMES})"),
    ("name", rf"{_EN_AM} (?:called|named) (?P<value>{_NAMES})"),
    ("birthday", rf"my birthday(?:['’]s| is)(?: on| in)? {_EN_REST}"),
    ("birthday", rf"i was born (?:on|in) (?P<value>[^\n,.]*\d[^\n,.]*?)(?=\s*{_STOP}|\s+in )"),
    ("job", rf"(?:{_EN_I} works?|{_EN_AM} working|and works?)"
            rf" (?:as (?:an? |the )?|for |at )(?!home|night){_EN_REST}"),
    ("job", rf"my (?:new )?(?:job|profession|occupation)(?:['’]s| is)(?: as)? (?:an? )?{_EN_REST}"),
    ("job", rf"(?:{_EN_AM}|i(?:['’]s| is)) an? (?P<value>(?:[\w-]+ ){{0,2}}(?:\w+(?:eer|ist|ian)"
            r"|teacher|doctor|nurse|lawyer|student|accountant|consultant|manager|designer|pilot"
            r"|chef|cook|driver|painter|writer|programmer|developer|vet|carpenter|baker|researcher"
            r"|professor|plumber|farmer|gardener|librarian|photographer|firefighter|police officer"
            r"|soldier|waiter|waitress|singer|dancer|actor|actress|architect|surgeon))(?!\w)"),
    ("home", rf"(?:{_EN_I} lives?|{_EN_AM} living) (?:in|at|near|on) {_EN_REST}"),
    ("home", rf"{_EN_I} moved (?:back )?to {_EN_REST}"),
    ("origin", rf"(?:{_EN_AM}|{_EN_I} (?:comes?|came)) (?:originally )?from (?P<value>{_NAMES})"),
    ("family", rf"my (?P<value>{_EN_RELATION}(?: is| are|['’]s)? ?(?:called|named|name is)? ?,? ?"
               rf"(?!(?-i:I)\b){_NAMES})"),
    ("family", rf"my (?P<value>{_EN_RELATION} (?:is|are|was|were|has|have|lives?|works?|died)"
               rf" [^\n,]+?)(?=\s+(?:because|but|so|and (?:i|we))(?!\w)|\s*{_STOP})"),
    ("family", rf"(?:i|we)(?: have|['’]ve got| has) (?P<value>(?:an?|one|two|three|four|five|\d)"
               rf" (?:\w+ )?{_EN_RELATION}(?: (?:called|named) {_NAMES}(?: and {_NAMES})?)?)"
               r"(?!\w)"),
    ("pet", rf"(?:my|our) (?P<value>{_EN_PET}(?: is)?(?: called| named|['’]s name is)?,?"
            rf" {_NAMES})"),
    ("pet", rf"(?P<value>an? {_EN_PET} (?:called|named) {_NAMES})"),
    ("pet", rf"(?:i|we)(?: have|['’]ve got| got| adopted| has) (?P<value>(?:an?|one|two|three|\d)"
            rf" {_EN_PET}(?: (?:called|named) {_NAMES}(?: and {_NAMES})?)?)(?!\w)"),
    ("health", rf"(?P<value>(?<=i am )allergic to [^\n,]+?|(?<=i['’]m )allergic to [^\n,]+?"
               rf"|(?<=i is )allergic to [^\n,]+?)(?=\s+(?:and|but|so)(?!\w)|\s*{_STOP})"),
    ("likes", rf"{_EN_I}(?: do)? (?:likes?|loves?|enjoys?|adores?|prefers?) (?:to )?{_EN_REST}"),
    ("likes", rf"my (?:all-time )?favou?rite (?P<value>[\w ]+? (?:is|are) [^\n,]+?)"
              rf"(?=\s+(?:because|but)(?!\w)|\s*{_STOP})"),
    ("dislikes", rf"{_EN_I}(?: (?:hates?|dislikes?|can['’]?t stand|cannot stand|detests?)"
                 r"| (?:don['’]t|do not|doesn['’]t|does not|never)(?: really)? (?:like|enjoy)) "
                 rf"(?:to )?{_EN_REST}"),
    ("own", rf"my (?P<value>[\w-]+(?: [\w-]+)?(?: is|['’]s)(?: called| named) {_NAMES})"),
    ("plan", rf"(?:{_EN_I} (?:plans?|intends?|hopes?|wants?) to"
             rf"|{_EN_AM} (?:going|planning|hoping) to|i(?:['’]ll| will| shall))"
             rf" (?!not\b|never\b|be honest){_EN_REST}"),
    ("past", rf"(?:i|we)(?:['’]ve| have| had)?(?: just| recently| finally| also| once)* "
             rf"(?P<value>{_EN_PAST} [^\n,]+?)(?=\s+(?:because|but|so|since|although|while|and (?:i"
             rf"|we|my|it))(?!\w)|\s*{_STOP})"),
)  # fmt: skip

_FR_REST = (
    r"(?P<value>[^\n,]+?)(?=\s+(?:parce|car|mais|donc|puisque|quand|lorsque|si|et (?:je|nous|on|mon"
    rf"|ma|mes|il|elle))(?!\w)|\s+et j['’]|\s*{_STOP})"
)
_FR_ADVERBS = r"(?: vraiment| beaucoup| aussi| toujours| bien)*"
_FR_RELATION = (
    r"(?:femme|mari|compagne|compagnon|copine|copain|fiancée?|mère|père|maman|papa|parents"
    r"|(?:petite? |grande? )?(?:sœurs?|soeurs?|frères?)|fils|filles?|enfants?|grand-mère|grand-père"
    r"|tante|oncle|cousine?|nièce|neveu)"
)
_FR_PET = (
    r"(?:chien(?:ne)?|chat(?:te)?|chiot|chaton|lapin|hamster|perroquet|cheval|poney|tortue"
    r"|poisson)s?"
)

FRENCH = _patterns(
    ("name", rf"(?:je m['’]appelle|mon (?:pré)?nom est|appelle-moi) (?P<value>{_NAMES})"),
    ("birthday", rf"mon anniversaire (?:est|tombe)(?: le| en)? {_FR_REST}"),
    ("birthday", rf"je suis née? (?:le|en) (?P<value>[^\n,.]*\d[^\n,.]*?)(?=\s*{_STOP}|\s+à )"),
    ("job", rf"je travaille{_FR_ADVERBS} (?:comme |chez |à |au |pour )(?!la maison){_FR_REST}"),
    ("job", r"je suis (?:un |une )?(?P<value>(?:\w+(?:eure?|ienne?|iste|euse|trice)|professeure?"
            r"|médecin|avocate?|étudiante?|comptable|architecte|boulangère?|infirmi(?:er|ère)"
            r"|enseignante?|cuisini(?:er|ère)))(?!\w)"),
    ("home", rf"(?:j['’]habite|je vis)(?: à| en| au| dans| près de)? {_FR_REST}"),
    ("home", rf"j['’]ai déménagé (?:à|en|au) {_FR_REST}"),
    ("origin", rf"je (?:viens|suis originaire) (?:de |du |d['’])(?P<value>{_NAMES})"),
    ("family", rf"(?:mon|ma|mes) (?P<value>{_FR_RELATION}(?: s['’]appellent?)?,? {_NAMES})"),
    ("family", rf"(?:mon|ma|mes) (?P<value>{_FR_RELATION} (?:est|sont|a|ont|travaille|vit|habite)"
               rf" [^\n,]+?)(?=\s+(?:car|mais)(?!\w)|\s*{_STOP})"),
    ("family", r"(?:j['’]ai|nous avons) "
               rf"(?P<value>(?:une?|deux|trois|quatre|\d) {_FR_RELATION})(?!\w)"),
    ("pet", rf"(?:mon|ma|notre) (?P<value>{_FR_PET}(?: s['’]appelle)?,? {_NAMES})"),
    ("pet", rf"(?:j['’]ai|nous avons)(?: adopté)? (?P<value>(?:une?|deux|trois|\d) {_FR_PET}"
            rf"(?: (?:appelée?|nommée?) {_NAMES})?)(?!\w)"),
    ("health", rf"(?:je suis|j['’]suis) (?P<value>allergique (?:à|au|aux) [^\n,]+?)(?=\s*{_STOP})"),
    ("likes", rf"(?:j['’]aime|j['’]adore|je préfère){_FR_ADVERBS} {_FR_REST}"),
    ("dislikes", rf"(?:je déteste|je n['’]aime (?:pas|plus)|j['’]aime pas|je ne supporte pas)"
                 rf"{_FR_ADVERBS} {_FR_REST}"),
    ("plan", r"(?:je vais|nous allons|on va|je (?:veux|compte|souhaite|prévois de|pense)) "
             r"(?!bien|mal)(?P<value>\w+(?:er|ir|re|oir)(?!\w)[^\n,]*?)"
             rf"(?=\s+(?:car|mais|parce)(?!\w)|\s*{_STOP})"),
    ("past", r"(?:j['’]ai|nous avons|on a|je suis|nous sommes) (?P<value>(?:\w{2,}(?:é|és|ée|ées)"
             r"|fait|vu|pris|lu|écrit|perdu|vendu|appris|couru|fini|reçu|partie?s?|venue?)"
             rf" [^\n,]+?)(?=\s+(?:car|mais|parce|et je|et j['’])(?!\w)|\s*{_STOP})"),
)  # fmt: skip

BY_LANGUAGE = {"en": ENGLISH, "fr": FRENCH}
