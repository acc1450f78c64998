"""The words by which fingerprint fields are recognised, a pack for each language.

Each pattern holds whole words, ignores case and captures `value`; lists are captured as they stand
and parted by fingerprint_rules. Patterns of one field are tried in their order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Patterns = tuple[re.Pattern[str], ...]

# A stop is a full stop that is not inside a word or number (v2.1, Node.js), or a line's end.
STOP = r"(?:[.!?;](?!\w)|\n|$)"
_TO_STOP = rf"(?P<value>[^\n]+?)\s*(?={STOP})"
_UPPER = r"(?-i:[A-ZÀ-ÖØ-Þ])"
WHO = rf"(?P<value>{_UPPER}[\w’'-]*(?: {_UPPER}[\w’'-]*)?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The patterns of one language; `signs` are small words by which it is recognised.

    `labelled` are those that end in a colon: they are clear whatever the language around them.
    """

    language: str
    signs: re.Pattern[str]
    decision: Patterns
    decision_labelled: Patterns
    rejected: Patterns
    rejected_labelled: Patterns
    reason: Patterns
    reason_labelled: Patterns
    assignee: Patterns
    assignee_labelled: Patterns
    validated_by: Patterns
    deadline: Patterns
    deadline_labelled: Patterns
    dated: re.Pattern[str]
    subject: Patterns
    preference: re.Pattern[str]
    state: re.Pattern[str]
    no_names: frozenset[str]


def _patterns(*sources: str) -> Patterns:
    return tuple(_word(source) for source in sources)


def _word(source: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{source})", re.IGNORECASE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What ends a choice in English: what follows says why, or against what.
_EN_END = (
    r"(?=\s+(?:because|since|as|rather than|instead of|over|due to|so that|so|but|and (?:not|we|i)"
    r"|which|thanks to|approved by|assigned to|before|by|until)(?!\w)|\s*[,(:]|\s*" + STOP + ")"
)
_EN_CHOICE = rf"(?P<value>[^\n,]+?){_EN_END}"
_EN_USE = (
    r"(?:use|adopt|take|pick|choose|go with|go for|switch(?: over)? to|migrate to|move to"
    r"|stick with|standardi[sz]e on)"
)
_EN_NOT_YET = r"(?<!not )(?<!n['’]t )(?<!never )(?<!yet )"

ENGLISH = Pack(
    language="en",
    signs=re.compile(
        r"(?<!\w)(?:the|and|of|to|is|was|are|we|i|it|in|for|with|my|has|will|by|that|this|not|on"
        r"|at|be|from|she|he|they|you|because)(?!\w)",
        re.IGNORECASE,
    ),
    decision=_patterns(
        rf"{_EN_NOT_YET}(?:decided|chose|chosen|selected|opted|recommended|agreed|voted)"
        rf"(?: (?:to|that (?:we|i|they) (?:will |should )?))? ?{_EN_USE} {_EN_CHOICE}",
        rf"(?:decided|agreed|opted|chose) (?P<value>(?:not to|against) [^\n,]+?){_EN_END}",
        rf"{_EN_NOT_YET}(?:decided|agreed|resolved|opted) to {_EN_CHOICE}",
        rf"{_EN_NOT_YET}(?:decided on|settled (?:on|for)|opted for|agreed on|went with|chose"
        rf"|selected|picked|have chosen|has chosen) {_EN_CHOICE}",
        rf"(?:(?:we|i|team)(?:['’]ll| will| shall| (?:are|am|is) going to)|(?:we|they)['’]re going"
        rf" to|i['’]m going to) {_EN_USE} {_EN_CHOICE}",
    ),
    decision_labelled=_patterns(rf"(?:decision|choice)\s*:\s*{_TO_STOP}"),
    rejected=_patterns(
        rf"(?:rather than|instead of) (?P<value>[^\n.,;!?]+?)(?=\s+(?:and|or|because|since|as|so"
        rf"|for|but|when|until|by|before)(?!\w)|\s*[,;]|\s*{STOP})",
        rf"(?:chose|chosen|picked|selected|prefer(?:red|s)?|went with|opted for|settled on)"
        rf" [^\n.,;]+? over (?P<value>[^\n.,;]+?)(?=\s+(?:because|since|as|for|so|but)(?!\w)"
        rf"|\s*[,;]|\s*{STOP})",
        r"(?:we|i|team|they|have|has|was|were) (?:rejected|discarded|ruled out|decided against"
        rf"|dismissed) (?P<value>[^\n]+?)(?=\s+(?:because|since|as|so|but|by)(?!\w)|\s*{STOP})",
    ),
    rejected_labelled=_patterns(
        r"(?:rejected|discarded|excluded|ruled out)\s*:\s*(?P<value>(?:\([^()\n]*\)|[^\n(])+?)"
        rf"\s*(?={STOP})"
    ),
    reason=_patterns(
        rf"because(?: of)? {_TO_STOP}",
        # "Since 2019", "since I was a child" and "works as a nurse" give no reason.
        r"since (?P<value>(?!i was|(?:s?he|they|we) (?:was|were) (?:an?|born|young)(?!\w))"
        r"(?:(?:it|we|they|he|she|there|i)|(?:the|this|that|our|my|its)(?: (?!and(?!\w)|or(?!\w))"
        r"[\w-]+){1,3}|(?!then|last|\d)[\w-]+) (?:is|are|was|were|has|have|had|can|cannot|can['’]t"
        r"|needs?|supports?|requires?|costs?|doesn['’]t|don['’]t|does not|do not|won['’]t|would"
        rf"|isn['’]t)(?!\w)[^\n]*?)\s*(?={STOP})",
        r"as (?P<value>(?:it|we|they|he|she|there|the|this|that|our|my|i) [^\n,]{0,40}?(?<!\w)(?:is"
        r"|are|was|were|has|have|had|can|cannot|can['’]t|needs?|supports?|requires?|costs?|runs?"
        rf"|doesn['’]t|don['’]t|does not|do not|won['’]t|want|isn['’]t)(?!\w)[^\n]*?)\s*(?={STOP})",
        rf"(?:due to|thanks to) (?P<value>[^\n]+?)\s*(?=,|{STOP})",
    ),
    reason_labelled=_patterns(rf"(?:reasons?|rationale|justification)\s*:\s*{_TO_STOP}"),
    assignee=_patterns(
        rf"{WHO}(?:['’]ll| will| shall)(?: also| then| soon| probably)*"
        r" (?!not\b|never\b)(?:take care of"
        r"|(?!be(?!\w)|have(?!\w)|become|get(?!\w)|need|like(?!\w)|love|hate|know|want|turn \d|seem"
        r"|feel|remain|stay(?!\w)|die(?!\w)|live(?!\w)|cost|rain|last(?!\w)|arrive|visit|marry"
        r"|retire)[a-z]+)(?!\w)",
        rf"{WHO} (?:is|was|has been|will be) (?:assigned|responsible|in charge)(?!\w)",
        rf"{WHO} (?:takes care of|is going to (?:do|implement|handle|write|review|fix|build))"
        r"(?!\w)",
        rf"(?<!not )assigned to (?:the )?(?:{WHO}|(?P<team>[\w-]+(?: team)?))",
    ),
    assignee_labelled=_patterns(rf"(?:assignee|owner|assigned)\s*:\s*{_TO_STOP}"),
    validated_by=_patterns(
        r"(?<!not )(?<!n['’]t )(?:validated|approved|signed off|confirmed|okayed) by"
        rf" (?:the |our |my )?(?:{WHO}|(?P<role>[\w-]+))",
        rf"(?:{WHO}|(?:the|our|my) (?P<role>[\w-]+))(?: has| have| had)?"
        r"(?: already| just| finally)? (?:validated|approved|signed off)(?!\w)",
    ),
    deadline=_patterns(
        r"sprint (?P<sprint>\d{1,4})(?!\w)",
        r"(?:deadline|due date)(?: is| was)?(?: set)?(?: on| for| to)? "
        rf"(?P<value>[^\n,]+?)\s*(?=,|{STOP})",
        rf"due (?:on |by |before )?(?P<value>(?!to(?!\w))[^\n,]+?)\s*(?=,|{STOP})",
    ),
    deadline_labelled=_patterns(
        rf"(?:deadline|due(?: date)?)\s*:\s*(?P<value>[^\n,]+?)\s*(?=,|{STOP})"
    ),
    dated=_word(rf"(?:before|by|until|till|no later than) (?P<value>[^\n,;]+?)\s*(?=[,;]|{STOP})"),
    subject=_patterns(
        r"(?:subject|topic)(?: is|\s*:)? (?P<value>[\w'’-]+(?: [\w'’-]+){0,5}?)\s*(?=[,;:(]|"
        rf"{STOP})",
        r"(?:about|regarding|concerning) (?P<value>(?!\d|it(?!\w)|that(?!\w)|this(?!\w)|to(?!\w)"
        r"|you(?!\w)|me(?!\w)|him|her(?!\w)|them|how(?!\w)|what(?!\w)|why(?!\w)|a (?:hundred|"
        r"thousand|week|month|year|day))(?:the |a |an |my |our )?[\w'’-]+(?: [\w'’-]+){0,4}?)\s*"
        rf"(?=[,;:(]|\s(?:and|because|but|since|so|with|for|on|in|at)(?!\w)|{STOP})",
        r"(?P<value>(?:migration|architecture|authentication|auth|api|database|db|frontend|backend"
        r"|deploy(?:ment)?)(?: (?:of|to|from|for) (?:the |our |a )?[\w’-]+)?)(?!\w)",
    ),
    preference=_word(
        r"(?:prefer(?:s|red|ence|ences)?|favou?rites?|dislike[sd]?"
        r"|(?:(?<!look )(?<!looks )(?<!looked )(?<!feel )(?<!feels )(?<!felt )(?<!sound )"
        r"(?<!sounds )(?<!seem )(?<!seems )(?<!just )(?<!something )(?<!anything )(?<!nothing )"
        r"(?<!things )(?<!more )(?<!much )(?<!would )(?<!['’]d )(?<!is )(?<!was )(?<!are )like"
        r"(?!(?:wise|ly|d)?\w))|likes|loves?|hates?|enjoys?|adores?|can['’]?t stand)(?!\w)"
    ),
    state=_word(
        r"(?:is|are|was|were|has|have|contains|equals|means|requires|supports|runs on|uses|costs"
        r"|weighs|measures) "
    ),
    no_names=_words("""
        i we you he she it they this that these those there here who what which when where how why
        the a an and or but if so then nobody everybody someone everyone one no yes not my our your
        his her their its today tomorrow tonight yesterday monday tuesday wednesday thursday friday
        saturday sunday january february march april may june july august september october november
        december was were is are been be has have had also already finally just
    """),
)

_FR_END = (
    r"(?=\s+(?:parce qu|car(?!\w)|puisqu|plutôt qu|au lieu d|pour que|mais|afin|grâce à"
    r"|en raison|validé|approuvé|avant|d['’]ici)|\s*[,(:]|\s*" + STOP + ")"
)
_FR_CHOICE = rf"(?:d['’]|de |du |des |le |la |les |l['’]|un |une )?(?P<value>[^\n,]+?){_FR_END}"
_FR_USE = r"(?:utiliser|adopter|prendre|choisir|passer à|migrer vers|partir sur)"

FRENCH = Pack(
    language="fr",
    signs=re.compile(
        r"(?<!\w)(?:le|la|les|des|du|de|un|une|est|et|je|j['’]\w+|nous|on|il|elle|pour|dans|avec|que"
        r"|qui|mon|ma|mes|notre|pas|sur|au|aux|par|sont|a été|ce|c['’]est|l['’]\w+|d['’]\w+|car"
        r"|parce)(?!\w)",
        re.IGNORECASE,
    ),
    decision=_patterns(
        r"(?:décidé|décide|choisi|recommandé|convenu|opté)(?: de| d['’]| pour)? ?"
        + _FR_USE
        + rf" {_FR_CHOICE}",
        rf"(?:décidé|convenu) (?P<value>(?:de ne pas|de ne plus) [^\n,]+?){_FR_END}",
        rf"(?:décidé|décidons|convenu) (?:de |d['’])(?P<value>[^\n,]+?){_FR_END}",
        rf"(?:opté pour|choisi|retenu|avons pris|sélectionné) {_FR_CHOICE}",
        rf"(?:nous allons|on va|je vais|l['’]équipe va) {_FR_USE} {_FR_CHOICE}",
        r"(?:nous|on|l['’]équipe) (?:utiliserons|utilisera|adopterons|adoptera|prendrons|prendra)"
        rf" {_FR_CHOICE}",
    ),
    decision_labelled=_patterns(rf"(?:décision|choix)\s*:\s*{_TO_STOP}"),
    rejected=_patterns(
        r"(?:plutôt (?:que |qu['’])|au lieu (?:de |d['’]|du ))(?:le |la |les |l['’])?"
        rf"(?P<value>[^\n.,;!?]+?)(?=\s+(?:et|ou|car|parce|puisque|pour|mais)(?!\w)|\s*[,;]|\s*{STOP})",
        r"(?:avons|a|ai|ont) (?:rejeté|écarté|exclu|éliminé) (?P<value>[^\n]+?)"
        rf"(?=\s+(?:car|parce|puisque|mais)(?!\w)|\s*{STOP})",
    ),
    rejected_labelled=_patterns(
        r"(?:rejetés?|rejetées?|écartés?|écartées?|exclus?|refusés?)\s*:\s*"
        rf"(?P<value>(?:\([^()\n]*\)|[^\n(])+?)\s*(?={STOP})"
    ),
    reason=_patterns(
        rf"(?:parce (?:que |qu['’])|puisque |puisqu['’]|car ){_TO_STOP}",
        r"(?:(?:en raison|à cause) (?:de |du |des |d['’])|grâce (?:à |au |aux ))"
        rf"(?P<value>[^\n]+?)\s*(?=,|{STOP})",
    ),
    reason_labelled=_patterns(rf"(?:raisons?|motifs?|justification)\s*:\s*{_TO_STOP}"),
    assignee=_patterns(
        rf"{WHO} (?:s['’]en (?:charge|occupe|chargera|occupera)|se charge(?:ra)?|s['’]occupe(?:ra)?"
        r"|est (?:responsable|chargée?|assignée?))(?!\w)",
        rf"{WHO} (?:va|doit) (?!être|avoir|aimer|adorer|devenir|mourir)\w+(?:er|ir|re)(?!\w)",
        rf"{WHO} (?!sera|aura)(?:\w{{2,}}(?:era|ira)|fera|prendra|mettra)(?!\w)",
        rf"(?:assignée?s?|attribuée?s?|confiée?s?) (?:à |au )(?:l['’])?(?:{WHO}|(?P<team>[\w-]+))",
    ),
    assignee_labelled=_patterns(rf"(?:responsable|assignée?)\s*:\s*{_TO_STOP}"),
    validated_by=_patterns(
        r"(?<!pas )(?<!non )(?:validé|approuvé|signé|accepté)e?s? par"
        rf" (?:le |la |l['’]|notre |mon )?(?:{WHO}|(?P<role>[\w-]+))",
        rf"(?:{WHO}|(?:le|la|notre) (?P<role>[\w-]+)) a (?:déjà |enfin )?(?:validé|approuvé)(?!\w)",
    ),
    deadline=_patterns(
        r"sprint (?P<sprint>\d{1,4})(?!\w)",
        r"(?:échéance|date limite|date butoir)(?: est)?(?: fixée)?(?: au| le| pour)? "
        rf"(?P<value>[^\n,:]+?)\s*(?=,|{STOP})",
    ),
    deadline_labelled=_patterns(
        rf"(?:échéance|date limite|date butoir|délai)\s*:\s*(?P<value>[^\n,]+?)\s*(?=,|{STOP})"
    ),
    dated=_word(
        rf"(?:avant|d['’]ici|au plus tard)(?: le| au| à)? (?P<value>[^\n,;]+?)\s*(?=[,;]|{STOP})"
    ),
    subject=_patterns(
        r"(?:sujet|objet)(?: est|\s*:)? (?P<value>[\w'’-]+(?: [\w'’-]+){0,5}?)"
        rf"\s*(?=[,;:(]|{STOP})",
        r"(?:au sujet|à propos|concernant)(?: de| du| des| d['’])? ?(?P<value>[\w'’-]+"
        rf"(?: [\w'’-]+){{0,4}}?)\s*(?=[,;:(]|\s(?:et|car|parce|mais|pour)(?!\w)|{STOP})",
        r"(?P<value>(?:migration|architecture|authentification|api|base de données|déploiement)"
        r"(?: (?:de|du|des|vers|pour) (?:la |le |l['’])?[\w’-]+)?)(?!\w)",
    ),
    preference=_word(
        r"(?:préf(?:ère|éré|érons|èrent|érence)e?s?|préférées?|aim(?:e|es|ons|ent)|ador(?:e|es|ons|ent)"
        r"|détest(?:e|es|ons|ent)|déteste|n['’]aim\w+)(?!\w)"
    ),
    state=_word(
        r"(?:est|sont|était|étaient|a|ont|contient|nécessite|utilise|supporte|coûte|pèse|mesure"
        r"|tourne sur|signifie) "
    ),
    no_names=_words("""
        je nous vous il elle on ils elles ce cela ça le la les un une et ou mais si qui que quoi où
        quand comment pourquoi demain hier lundi mardi mercredi jeudi vendredi samedi dimanche
        janvier février mars avril mai juin juillet août septembre octobre novembre décembre tout
        rien personne
    """),
)

PACKS = (ENGLISH, FRENCH)
