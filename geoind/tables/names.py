"""Which names of columns tell that a place is inside, in any case style and many languages."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from geoind.errors import InvalidInputError

__all__ = [
    "coordinate_columns",
    "is_time",
    "listed",
    "named_path",
    "paired",
    "tells_motion",
    "tells_place",
    "words_of",
]

LAT_NAMES = ("lat", "latitude")
LON_NAMES = ("lon", "lng", "long", "longitude")

_WORDS = """
lat lats latitude latitudes lon lons lng lngs longitude longitudes latlon latlng latlong lonlat lnglat longlat
late5 late6 late7 lone5 lone6 lone7 lnge5 lnge6 lnge7
coord coords coordinate coordinates geocoord geocode geocoded geotag gps gpx gnss geo geoloc geopoint geoposition
geom geometry geometries geog geography geojson wkt wkb ewkt ewkb thegeom centroid
location locations loc place placeid placename venue venues poi pois whereabouts
easting eastings northing northings utm mgrs usng osgb osgr gridref georef maidenhead
geohash geohashes h3 h3cell h3index s2 s2cell s2cellid s2id s2token quadkey quadkeys quadtree
pluscode pluscodes openlocationcode olc what3words what3word w3w whatthreewords
hilbert morton zorder zcurve
bbox bounds boundingbox envelope extent xmin xmax ymin ymax minx maxx miny maxy minlon maxlon minlat maxlat
address addresses addr street streets streetname streetnumber housenumber housenr housename
zip zipcode postcode postcodes postal postalcode zcode
altitude elevation ele elev altitudes elevations
wifi wlan ssid bssid celltower cellid cellids enodeb ibeacon beacon beacons
breite breitengrad breitengrade laengengrad langengrad geobreite geolaenge standort adresse adressen anschrift
strasse strassen hausnummer hausnr plz postleitzahl koordinate koordinaten hochwert rechtswert hohenmeter
rue codepostal coordonnee coordonnees lieu emplacement adres
latitud longitud direccion calle codigopostal coordenada coordenadas ubicacion
endereco rua cep localizacao latitudine longitudine indirizzo strada coordinata coordinate posizione
breedtegraad lengtegraad straat huisnummer locatie
breddegrad lengdegrad langdgrad breddgrad laengdegrad adress gatuadress postnummer postnr koordinat koordinater
szerokosc dlugosc ulica pocztowy wspolrzedne sirka delka adresa ulice psc souradnice
leveysaste pituusaste osoite postinumero koordinaatit szelesseg hosszusag utca iranyitoszam
enlem boylam adresi sokak lintang bujur alamat
широта долгота адрес улица координаты довгота адреса вулиця геопозиция местоположение
πλατος μηκος διευθυνση οδος
"""
WORDS = frozenset(_WORDS.split())
"""Whole words, without accents, in lower case; also two or three neighbours of a name written together."""

_INSIDE = """
latitud longitud geohash geometr coordinat koordinat coordonne coordenad postcode zipcode what3words pluscode
quadkey breitengrad laengengrad langengrad strasse
纬度 经度 緯度 經度 経度 坐标 座標 地址 住址 住所 郵便番号 位置 경도 위도 주소 좌표 अक्षांश देशांतर
خطالعرض خطالطول العنوان ละติจูด ลองจิจูด
"""

_WHOSE = """
start end begin stop from to src source dst dest destination orig origin pickup pick dropoff drop pu do o d p home
work user my gps geo first last prev previous next old new true real raw current device phone car vehicle driver
rider customer client store shop max min avg mean center centre mid map nav poi venue stop station
"""
WHOSE = frozenset(_WHOSE.split())
"""What stands before lat and lon in a name without separators: homelat, startlng."""

_NOT_POSTAL = """
email mail e ip ipv4 ipv6 mac web url http memory wallet btc bitcoin eth contract hardware bus
"""
NOT_POSTAL = frozenset(_NOT_POSTAL.split())
"""What stands before "address" when no house has it."""

_ABOUT = """
accuracy precision error err std sigma quality source type format status state verified valid validated known
enabled disabled changed updated count counts number total time times timestamp ts date datetime at age unit units
version method provider fix hdop pdop satellites consent permission permissions allowed required missing
confidence score language
"""
ABOUT = frozenset(_ABOUT.split())
"""A name that ends so speaks about a place and does not tell it: gps_accuracy, address_verified, location_time."""

_TIMES = """
time times timestamp ts date datetime day hour minute second seconds epoch when at zeit datum uhrzeit heure fecha
hora tijd tid czas cas aika 时间 日期 時間 日時 время дата
"""
TIMES = frozenset(_TIMES.split())


_MOTION = """
speed speeds velocity velocities kmh kph mph knots course heading headings bearing bearings azimuth direction yaw
distance distances dist odometer mileage acceleration accel gyro steps geschwindigkeit richtung vitesse velocidad
"""
MOTION = frozenset(_MOTION.split())
"""What is measured on the way. A drive is found on the map from its speeds alone (Gao et al., UbiComp 2014)."""


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case and without accents.

    Examples
    --------
    >>> words_of("pickupLatitude"), words_of("HOME_Längengrad"), words_of("h3-index.9")
    (('pickup', 'latitude'), ('home', 'langengrad'), ('h3', 'index', '9'))
    """
    plain = name.replace("ß", "ss")
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(sign))
    plain = re.sub(r"([a-z0-9])([A-Z])|([A-Z]+)(?=[A-Z][a-z])", r"\1\3 \2", plain)
    return tuple(word for word in re.split(r"[\W_]+", plain.casefold()) if word)


INSIDE = tuple("".join(words_of(part)) for part in _INSIDE.split())
"""Long enough, or in a script without spaces, to be looked for inside a word."""


@lru_cache(maxsize=4096)
def tells_place(name: str) -> bool:
    """Return whether a column of that name would be expected to tell a place.

    Examples
    --------
    >>> [name for name in ("dropoff_lat", "homelng", "H3Index", "Straße", "PULocationID") if not tells_place(name)]
    []
    >>> [name for name in ("late", "platform", "latency", "salon", "email_address") if tells_place(name)]
    []
    """
    words = words_of(name)
    if not words or words[0] in ("is", "has", "num", "n", "count"):
        return False
    # A house_number is no number of houses.
    if words[-1] in ABOUT and "".join(words[-2:]) not in WORDS:
        return False
    whole = "".join(words)
    if any(part in whole for part in INSIDE):
        return True
    bare = [word.rstrip("0123456789") or word for word in words]
    if words[-1] in ("long", "lange", "laenge", "alt") and set(words[:-1]) <= WHOSE:
        return True
    for position, (word, stem) in enumerate(zip(words, bare, strict=True)):
        if word in ("address", "addresses", "addr", "adresse", "adres") and NOT_POSTAL & set(words[:position]):
            continue
        if word in WORDS or (stem in WORDS and stem not in ("loc", "geo")) or _glued(stem):
            return True
    pairs = ("".join(words[at : at + size]) for size in (2, 3) for at in range(len(words) - size + 1))
    return any(pair in WORDS and len(pair) > 3 for pair in pairs)


def tells_motion(name: str) -> bool:
    """Return whether a column of that name would be expected to tell how somebody moved.

    Examples
    --------
    >>> tells_motion("gps_speed"), tells_motion("Heading"), tells_motion("heart_rate")
    (True, True, False)
    """
    return bool(MOTION & set(words_of(name)))


def _glued(word: str) -> bool:
    """Return whether a word is whose and lat or lon without a separator."""
    return any(word.endswith(axis) and word.removesuffix(axis) in WHOSE for axis in ("lat", "lon", "lng"))


def paired(names: Iterable[str]) -> list[str]:
    """Return the names that differ by x and y alone: together they are a place.

    Examples
    --------
    >>> paired(["x", "y", "speed"]), paired(["pos_x", "pos_y"]), paired(["x", "z"])
    (['x', 'y'], ['pos_x', 'pos_y'], [])
    """
    known = {words_of(name): name for name in names}
    result = []
    for words, name in known.items():
        other = tuple({"x": "y", "y": "x"}.get(word, word) for word in words)
        if other != words and other in known:
            result.append(name)
    return result


def is_time(name: str) -> bool:
    """Return whether a name says that its column holds times.

    Examples
    --------
    >>> is_time("createdAt"), is_time("pickup_datetime"), is_time("speed")
    (True, True, False)
    """
    return bool(TIMES & set(words_of(name)))


def listed(names: Iterable[str]) -> str:
    """Return names for a message, without those that may be values: where a header is missing, true places.

    Examples
    --------
    >>> listed(["trip", "lat", "h3_9"]), listed(["7", "48.8584", "2.2945"])
    ('trip, lat, h3_9', '7, ..., ...')
    """
    return ", ".join("..." if sum(map(str.isdigit, str(name))) > 2 else str(name) for name in names)


def named_path(path: str) -> str:
    """Return a path for a message, without what may be a coordinate.

    Examples
    --------
    >>> named_path("2024-05/trips.csv"), named_path("48.8584_2.2945/trips.csv")
    ('2024-05/trips.csv', '..._.../trips.csv')
    """
    return re.sub(r"\d+[.,]\d{3,}", "...", path)


def coordinate_columns(names: Sequence[str], lon: str | None, lat: str | None) -> tuple[str, str]:
    """Return the names of the longitude and the latitude: as chosen, or the only ones that look like it.

    Examples
    --------
    >>> coordinate_columns(["id", "Latitude", "Longitude"], None, None)
    ('Longitude', 'Latitude')
    """
    chosen = _choose(names, lon, LON_NAMES, "lon"), _choose(names, lat, LAT_NAMES, "lat")
    if chosen[0] == chosen[1]:
        raise InvalidInputError("lon and lat must be two columns")
    return chosen


def _choose(names: Sequence[str], chosen: str | None, usual: Sequence[str], option: str) -> str:
    found = [name for name in names if (name.strip().lower() in usual if chosen is None else name == chosen)]
    if len(found) == 1:
        return found[0]
    if chosen is not None:
        raise InvalidInputError(f"{option}: column {chosen!r} must be there once, the columns are {listed(names)}")
    problem = "no column is" if not found else "several columns are"
    raise InvalidInputError(f"{problem} called {', '.join(usual[:-1])} or {usual[-1]}: say which with {option}")
