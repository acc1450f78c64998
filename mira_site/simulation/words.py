"""The words of the story: what can be said, asked and noted (pure)."""

from __future__ import annotations


def _listed(words: str) -> list[str]:
    """The words in a text; where one is of several words, underscores join them."""
    return [word.replace("_", " ") for word in words.split()]


NAMES = _listed("""
    Lena Jonas Sophie Tobias Annika Felix Clara Matteo Ingrid Pavel Nora Samir Greta Luka Esther
    Bruno Yasmin Oskar Beatrix Henrik Paula Dmitri Fiona Goran Helga Ivo Jolanda Kasimir Leonie
    Milan Natascha Otmar Philippa Quentin Rosalie Severin Theresa Urban Valentina Wanda
""")  # fmt: skip
CITIES = _listed("""
    Riga Porto Tallinn Bergen Seville Gdansk Utrecht Zagreb Palermo Cork Malmo Ghent Kaunas
    Izmir Bilbao Rouen Aarhus Trieste Brno Lublin Plovdiv Cluj Tampere Leipzig Ancona Dundee
    Namur Split Evora Basel Nantes Turku Odessa Verona Murcia Bremen Antwerp Olomouc Szeged Kiel
""")  # fmt: skip
COLLECTED = _listed("""
    stamps teapots fossils postcards masks thimbles vinyl_records butterflies snow_globes
    old_maps beer_mats fountain_pens marbles tin_toys cameras bookmarks keys lanterns coins
    minerals puppets chess_sets comic_books pocket_watches sea_shells enamel_signs model_trains
    perfume_bottles sugar_bowls walking_sticks autographs matchboxes telescopes typewriters
    umbrellas whistles buttons corkscrews globes hats
""")  # fmt: skip
JOBS = _listed("""
    baker pilot notary beekeeper surveyor violin_maker vet bus_driver florist roofer librarian
    dentist carpenter translator welder chemist gardener judge cook midwife plumber actor
    geologist potter tailor paramedic optician farmer architect jeweller brewer forester teacher
    sculptor locksmith journalist butcher nurse diver clockmaker
""")  # fmt: skip
PETS = _listed("""
    Bello Rufus Nero Pixie Waldi Hektor Luna Momo Bruna Caesar Daisy Elvis Fips Gismo Harras
    Ilka Joker Kira Lumpi Maja Nala Olli Pluto Quax Rocky Sissi Tasso Ulla Vasco Wotan Xena Yuma
    Zorro Amber Balu Cosmo Dexter Emmi Flocke Gina
""")  # fmt: skip
FRIENDS = {"origin": CITIES, "collects": COLLECTED, "job": JOBS, "dog": PETS}
ABOUT_FRIENDS = {  # said, noted, said in other words, asked
    "origin": (
        "My friend {name} comes from {value}.",
        "Robin's friend {name} comes from {value}.",
        "You know {name}, my friend who comes from {value}.",
        "Where does {name} come from?",
    ),
    "collects": (
        "My friend {name} collects {value}.",
        "Robin's friend {name} collects {value}.",
        "At the weekend my friend {name} showed me some {value} of the collection again.",
        "What does {name} collect?",
    ),
    "job": (
        "My friend {name} works as a {value}.",
        "Robin's friend {name} works as a {value}.",
        "Being a {value} keeps my friend {name} busy these days.",
        "What is the job of {name}?",
    ),
    "dog": (
        "My friend {name} has a dog called {value}.",
        "Robin's friend {name} has a dog called {value}.",
        "I went for a walk with {value}, the dog of my friend {name}.",
        "What is the dog of {name} called?",
    ),
}
_AGAIN = {
    "origin": "{name}, a friend of Robin, comes from {value}.",
    "collects": "{name}, a friend of Robin, collects {value}.",
    "job": "{name}, a friend of Robin, works as a {value}.",
    "dog": "The dog of Robin's friend {name} is called {value}.",
}

# What passed and does not matter: "I …", noted as "Robin …".
PASSED = """
missed the tram in the rain; burnt the toast; sat behind a tall man at the cinema
lost a glove; repotted the ficus; waited ages at the post office; slept badly because of the heat
found a coin under the sofa; ironed four shirts; stubbed a toe on the door
watched the lunar eclipse; got stuck in the lift; had goulash for lunch; bought light bulbs
spilled ink on the carpet; saw a heron by the canal; sneezed all morning
took the bottles to the recycling bank; defrosted the freezer; misplaced the umbrella
tried on sunglasses; queued for concert programmes; polished the brass lamp
heard thunder at midnight; cleaned the oven; overslept by ten minutes; broke a saucer
fed the ducks; forgot the shopping bag; changed the vacuum cleaner bag
tightened a loose screw on the chair; swept leaves off the balcony
chased a wasp out of the kitchen
finished a crossword; refilled the stapler; saw graffiti at the station
dropped the keys in a puddle
let the milk boil over; returned library books; washed the curtains; pumped up the tyres
got a paper cut; tasted an odd cheese; printed boarding cards; counted the pigeons on the roof
charged the torch; walked past a film crew; peeled two kilos of potatoes
sharpened the kitchen knives
wiped fingerprints off the window; mistook salt for sugar; scratched the frying pan
watered the basil; sewed on a button; rearranged the spice rack; got caught in a hailstorm
picked elderflowers; wrapped a parcel; emptied the mousetrap; descaled the kettle
listened to a podcast about volcanoes; saw a double rainbow; ran out of toothpaste
untangled the headphones; skipped dessert; lent a pencil to a stranger; greased the bicycle chain
sorted old receipts; admired a vintage tractor; fixed a dripping tap; gave directions to tourists
woke up with a stiff neck; unpacked the winter coats; scrubbed the bathroom tiles
won a round of darts; ate too many cherries; signed for a delivery; trimmed the hedge
followed a snail trail; dusted the piano; filled in a survey; carried a sofa upstairs
tripped over a cable; hung a mirror in the hall; sold a lamp at the flea market
made lemonade; caught a glimpse of the mayor; drew a moustache on a poster
whistled in the stairwell
cleared the gutter; froze some raspberries; tested the smoke alarm
"""


CHANGED = (  # key, old, new, said, noted, asked
    ("home", "Graz", "Linz", "I live in {}", "Robin lives in {}", "Where do I live?"),
    ("employer", "Sonnblick Software", "Kestrel Labs", "My employer is {}",
     "Robin's employer is {}", "Who is my employer?"),
    ("dentist", "Doctor Huber", "Doctor Novak", "My dentist is {}", "Robin's dentist is {}",
     "Who is my dentist?"),
    ("gym", "the Iron Temple", "the Blue Hall", "I train at the gym called {}",
     "Robin trains at the gym called {}", "At which gym do I train?"),
    ("phone", "0664 118 220", "0699 730 515", "My phone number is {}",
     "Robin's phone number is {}", "What is my phone number?"),
    ("car", "a red Skoda", "a blue Renault", "I drive {}", "Robin drives {}",
     "Which car do I drive?"),
    ("bank", "Raiffeisen", "Erste Bank", "My bank account is with {}",
     "Robin's bank account is with {}", "With which bank is my account?"),
    ("electricity", "Verbund", "Windstrom", "My electricity comes from {}",
     "Robin's electricity comes from {}", "Where does my electricity come from?"),
    ("hairdresser", "Salon Vera", "Studio Kamm", "I get my hair cut at {}",
     "Robin gets a haircut at {}", "Where do I get my hair cut?"),
    ("tea", "Earl Grey", "Rooibos", "My favourite tea is {}", "Robin's favourite tea is {}",
     "What is my favourite tea?"),
    ("office", "on the third floor", "on the ninth floor", "My office is {}",
     "Robin's office is {}", "Where is my office?"),
    ("commute", "tram 5", "bus 31", "I take {} on my way to work",
     "Robin takes {} on the way to work", "What do I take on my way to work?"),
    ("language", "Portuguese", "Finnish", "The language I am learning is {}",
     "The language Robin is learning is {}", "Which language am I learning?"),
    ("instrument", "the cello", "the clarinet", "The instrument I play is {}",
     "The instrument Robin plays is {}", "Which instrument do I play?"),
    ("choir", "Tuesdays", "Thursdays", "My choir rehearses on {}",
     "Robin's choir rehearses on {}", "When does my choir rehearse?"),
    ("laptop", "a ThinkPad", "a MacBook", "My work laptop is {}", "Robin's work laptop is {}",
     "What is my work laptop?"),
    ("landlord", "Mr Pichler", "Mrs Sandner", "My landlord is {}", "Robin's landlord is {}",
     "Who is my landlord?"),
    ("breakfast", "muesli", "scrambled eggs", "For breakfast I always have {}",
     "For breakfast Robin always has {}", "What do I have for breakfast?"),
    ("running", "along the river", "up the castle hill", "My running route goes {}",
     "Robin's running route goes {}", "Where does my running route go?"),
    ("newspaper", "Der Standard", "Die Presse", "The newspaper I subscribe to is {}",
     "The newspaper Robin subscribes to is {}", "To which newspaper do I subscribe?"),
)  # fmt: skip
PAST = {
    "home": "Where did I live before?",
    "employer": "Who was my employer before?",
    "dentist": "Who was my dentist before?",
    "gym": "At which gym did I train before?",
    "phone": "What was my phone number before?",
    "car": "Which car did I drive before?",
    "bank": "With which bank was my account before?",
    "electricity": "Where did my electricity come from before?",
    "hairdresser": "Where did I get my hair cut before?",
    "tea": "What was my favourite tea before?",
    "office": "Where was my office before?",
    "commute": "What did I take on my way to work before?",
    "language": "Which language was I learning before?",
    "instrument": "Which instrument did I play before?",
    "choir": "When did my choir rehearse before?",
    "laptop": "What was my work laptop before?",
    "landlord": "Who was my landlord before?",
    "breakfast": "What did I have for breakfast before?",
    "running": "Where did my running route go before?",
    "newspaper": "To which newspaper did I subscribe before?",
}
EVENTS = (  # key, said, noted, asked
    ("wedding", "My sister gets married on {}", "The wedding of Robin's sister is on {}",
     "When is the wedding of my sister?"),
    ("concert", "We have tickets for the Mahler concert on {}",
     "Robin has tickets for the Mahler concert on {}", "When is the Mahler concert?"),
    ("exam", "My sailing exam is on {}", "Robin's sailing exam is on {}",
     "When is my sailing exam?"),
    ("marathon", "I run the half marathon on {}", "Robin runs the half marathon on {}",
     "When is the half marathon?"),
    ("flight", "My flight to Lisbon leaves on {}", "Robin's flight to Lisbon leaves on {}",
     "When does my flight to Lisbon leave?"),
    ("review", "The yearly review with my boss is on {}",
     "Robin's yearly review with the boss is on {}", "When is the yearly review with my boss?"),
    ("opening", "The opening of the ceramics exhibition is on {}",
     "The opening of the ceramics exhibition that Robin attends is on {}",
     "When does the ceramics exhibition open?"),
    ("visit", "My aunt comes to visit on {}", "Robin's aunt comes to visit on {}",
     "When does my aunt come to visit?"),
    ("inspection", "The chimney inspection is on {}", "The chimney inspection at Robin's is on {}",
     "When is the chimney inspection?"),
    ("reunion", "Our class reunion is on {}", "Robin's class reunion is on {}",
     "When is our class reunion?"),
)  # fmt: skip


def friends_facts() -> list[tuple[str, str, str]]:
    """(name, what about them, value): four for each friend, no value twice."""
    return [
        (name, about, values[number])
        for about, values in FRIENDS.items()
        for number, name in enumerate(NAMES)
    ]


def passing() -> list[str]:
    """What came to pass, as it goes on after "I"."""
    return [one.strip() for line in PASSED.split("\n") for one in line.split(";") if one.strip()]


def again_noted(about: str, name: str, value: str) -> str:
    return _AGAIN[about].format(name=name, value=value)
