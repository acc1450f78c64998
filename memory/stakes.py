"""What it would cost to have forgotten something, by its words (pure).

Vital: health, safety, promises, limits, and who is closest. Trivial: errands and passing moments.
In English, German, French and Spanish; whatever the lists do not know is ordinary.
"""

from __future__ import annotations

import re

from memory.models import Stakes


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)


_CLOSEST = (
    "wife|husband|partner|fiancée?|son|daughter|mother|father|mum|mom|dad|sister|brother|child"
    "|frau|mann|verlobte[rn]?|sohn|tochter|mutter|vater|schwester|bruder|kind"
    "|femme|mari|fils|fille|mère|père|sœur|soeur|frère"
    "|esposa|esposo|marido|mujer|hijo|hija|madre|padre|hermana|hermano"
)
_VITAL = _any(
    # Health
    r"(?<!not )(?:allerg|alérgic)\w*|intoleran\w+|unverträglich\w*|anaphyla\w+|epipen|asthma\w*"
    r"|asma|diabet\w*|epilep\w+|insulin\w*|blood (?:type|group|pressure)|blutgruppe|blutdruck"
    r"|groupe sanguin|grupo sanguíneo|medications?|medicines?|medikament\w*|tabletten"
    r"|médicaments?|medicamentos?|medicación|prescri\w+|pregnan\w+|schwanger\w*|enceinte"
    r"|embarazad[ao]|pacemaker|herzschrittmacher|cancer|krebs|cáncer|chemo\w*|surgery|operiert"
    r"|heart (?:attack|condition|disease)|herzinfarkt|infarctus|infarto|stroke|schlaganfall"
    r"|suicid\w+|self-harm|suizid\w*|depress(?:ion|ed)|depression\w*|coeliac|celiac|zöliakie",
    # Safety
    r"emergenc\w+|notfall\w*|urgence\w*|emergencias?|next of kin|restraining order",
    # Promises, and limits put to others
    r"i promised?|i swore|ich (?:habe )?(?:\w+ ){0,4}versprochen|ich verspreche|j['’]ai promis"
    r"|je promets|prometí|he prometido|prometo",
    r"(?:i|you|we) (?:must|may|can|should|shall) (?:never|always)|(?:please )?never (?:call|mention"
    r"|tell|share|show|ask|use|send|wake|touch)|please always|(?:bitte )?niemals|darf (?:ich )?nie"
    r"|bitte immer|ne (?:\w+ )?jamais|por favor siempre|nunca (?:me )?(?:llames|menciones|digas)",
    # Days and names of those who are closest
    r"birthdays?|geburtstag\w*|geburtsdatum|anniversaire|cumpleaños|wedding (?:day|anniversary)"
    r"|hochzeitstag|was born on|born on",
    r"(?:died|passed away|dead|gestorben|verstorben|starb|décédée?|est morte?|murió|falleci\w+)",
    rf"(?:my|mein\w*|mon|ma|mi|[’']s) (?:{_CLOSEST})(?:['’]s name is| is called| is named| heißt"
    r"| s['’]appelle| se llama)",
)
_TRIVIAL = _any(
    r"(?:need|have|want|going|ought) to (?:buy|get|pick up|drop off|return|water|call back|print"
    r"|charge|vacuum|do the (?:dishes|laundry|shopping))|shopping list|to-?do list"
    r"|(?:bought|buying) (?:milk|bread|eggs|groceries)"
    r"|(?:had|ate|having) \w+(?: \w+){0,4} for (?:lunch|breakfast|dinner)"
    r"|the weather|it['’]s raining|stuck in traffic|i['’]m (?:tired|hungry|bored|sleepy)",
    r"(?:muss|müssen|will|sollte) (?:\w+ ){0,4}(?:einkaufen|besorgen|abholen|kaufen|gießen|putzen)"
    r"|einkaufsliste|(?:zum|zu) (?:mittag|abendessen|frühstück) gegessen|das wetter|es regnet"
    r"|ich bin (?:müde|hungrig)",
    r"(?:dois|faut|vais) (?:acheter|chercher|récupérer|arroser)|liste de courses|il pleut"
    r"|je suis fatiguée?|j['’]ai faim",
    r"(?:tengo que|voy a|necesito) (?:comprar|recoger|regar)|lista de la compra|está lloviendo"
    r"|estoy cansad[ao]|tengo hambre",
)


def of(text: str) -> Stakes:
    """The stakes of a statement; what is vital is never trivial too."""
    if _VITAL.search(text):
        return Stakes.VITAL
    return Stakes.TRIVIAL if _TRIVIAL.search(text) else Stakes.ORDINARY
