"""Writes terms of RDF as words for people: those of well-known vocabularies in the languages of the
pages, others by their names in the document or the last part of their IRIs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from podstead.core import vocab
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Subject

_LANGUAGES: Final = ("en", "de", "es", "nl")

_NAMESPACES: Final = MappingProxyType(
    {
        "rdf": vocab.RDF,
        "rdfs": vocab.RDFS,
        "owl": vocab.OWL,
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "dcterms": vocab.DCTERMS,
        "dc": "http://purl.org/dc/elements/1.1/",
        "foaf": vocab.FOAF,
        "vcard": vocab.VCARD,
        "schema": vocab.SCHEMA,
        "schema-http": vocab.SCHEMA_HTTP,
        "ldp": vocab.LDP,
        "acl": vocab.ACL,
        "solid": vocab.SOLID,
        "pim": vocab.PIM,
        "as": vocab.AS,
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "stat": vocab.STAT,
        "cert": vocab.CERT,
        "bookmark": "http://www.w3.org/2002/01/bookmark#",
        "cal": "http://www.w3.org/2002/12/cal/ical#",
        "sioc": "http://rdfs.org/sioc/ns#",
        "wf": "http://www.w3.org/2005/01/wf/flow#",
        "meeting": "http://www.w3.org/ns/pim/meeting#",
        "ui": "http://www.w3.org/ns/ui#",
        "oidc": vocab.OIDC,
    }
)

# One line for each term: its name, then English, German, Spanish and Dutch.
_LABELS: Final = """
rdf:type|Type|Typ|Tipo|Type
rdf:value|Value|Wert|Valor|Waarde
rdf:Property|Property|Eigenschaft|Propiedad|Eigenschap
rdf:List|List|Liste|Lista|Lijst
rdfs:label|Name|Name|Nombre|Naam
rdfs:comment|Comment|Kommentar|Comentario|Opmerking
rdfs:seeAlso|See also|Siehe auch|Véase también|Zie ook
rdfs:isDefinedBy|Defined by|Definiert durch|Definido por|Gedefinieerd door
rdfs:subClassOf|Kind of|Unterklasse von|Subclase de|Subklasse van
rdfs:Class|Class|Klasse|Clase|Klasse
owl:sameAs|Same as|Dasselbe wie|Igual que|Hetzelfde als
owl:Class|Class|Klasse|Clase|Klasse
owl:Ontology|Ontology|Ontologie|Ontología|Ontologie
owl:versionInfo|Version|Version|Versión|Versie
skos:Concept|Concept|Begriff|Concepto|Begrip
skos:prefLabel|Preferred name|Bevorzugte Bezeichnung|Nombre preferido|Voorkeursnaam
skos:altLabel|Other name|Andere Bezeichnung|Otro nombre|Andere naam
skos:definition|Definition|Definition|Definición|Definitie
skos:note|Note|Notiz|Nota|Notitie
skos:broader|Broader|Oberbegriff|Más amplio|Breder
skos:narrower|Narrower|Unterbegriff|Más específico|Smaller
skos:related|Related|Verwandt|Relacionado|Verwant
dcterms:title|Title|Titel|Título|Titel
dcterms:description|Description|Beschreibung|Descripción|Beschrijving
dcterms:created|Created|Erstellt|Creado|Gemaakt
dcterms:modified|Changed|Geändert|Modificado|Gewijzigd
dcterms:date|Date|Datum|Fecha|Datum
dcterms:issued|Published|Veröffentlicht|Publicado|Gepubliceerd
dcterms:creator|Created by|Erstellt von|Creado por|Gemaakt door
dcterms:contributor|Contributor|Mitwirkende|Colaborador|Bijdrager
dcterms:publisher|Publisher|Herausgeber|Editor|Uitgever
dcterms:subject|Subject|Thema|Tema|Onderwerp
dcterms:language|Language|Sprache|Idioma|Taal
dcterms:license|License|Lizenz|Licencia|Licentie
dcterms:references|Refers to|Verweist auf|Hace referencia a|Verwijst naar
dcterms:isPartOf|Part of|Teil von|Parte de|Onderdeel van
dcterms:hasPart|Contains|Enthält|Contiene|Bevat
dcterms:format|Format|Format|Formato|Formaat
dcterms:identifier|Identifier|Kennung|Identificador|Identificatie
dc:title|Title|Titel|Título|Titel
dc:description|Description|Beschreibung|Descripción|Beschrijving
dc:creator|Created by|Erstellt von|Creado por|Gemaakt door
dc:date|Date|Datum|Fecha|Datum
foaf:Person|Person|Person|Persona|Persoon
foaf:Agent|Agent|Akteur|Agente|Actor
foaf:Organization|Organization|Organisation|Organización|Organisatie
foaf:Group|Group|Gruppe|Grupo|Groep
foaf:Document|Document|Dokument|Documento|Document
foaf:PersonalProfileDocument|Profile|Profil|Perfil|Profiel
foaf:Image|Picture|Bild|Imagen|Afbeelding
foaf:OnlineAccount|Account|Konto|Cuenta|Account
foaf:name|Name|Name|Nombre|Naam
foaf:givenName|Given name|Vorname|Nombre de pila|Voornaam
foaf:familyName|Family name|Nachname|Apellido|Achternaam
foaf:firstName|First name|Vorname|Nombre de pila|Voornaam
foaf:lastName|Last name|Nachname|Apellido|Achternaam
foaf:nick|Nickname|Spitzname|Apodo|Bijnaam
foaf:title|Title|Titel|Título|Titel
foaf:img|Picture|Bild|Imagen|Afbeelding
foaf:depiction|Picture|Bild|Imagen|Afbeelding
foaf:thumbnail|Thumbnail|Vorschaubild|Miniatura|Miniatuur
foaf:homepage|Home page|Webseite|Página principal|Startpagina
foaf:weblog|Blog|Blog|Blog|Blog
foaf:page|Page|Seite|Página|Pagina
foaf:mbox|E-mail|E-Mail|Correo electrónico|E-mail
foaf:phone|Telephone|Telefon|Teléfono|Telefoon
foaf:knows|Knows|Kennt|Conoce a|Kent
foaf:member|Member|Mitglied|Miembro|Lid
foaf:maker|Made by|Erstellt von|Hecho por|Gemaakt door
foaf:made|Made|Hat erstellt|Ha hecho|Heeft gemaakt
foaf:primaryTopic|About|Handelt von|Trata de|Gaat over
foaf:topic|Topic|Thema|Tema|Onderwerp
foaf:account|Account|Konto|Cuenta|Account
foaf:interest|Interest|Interesse|Interés|Interesse
foaf:age|Age|Alter|Edad|Leeftijd
foaf:based_near|Lives near|Wohnt bei|Vive cerca de|Woont in de buurt van
vcard:Individual|Contact|Kontakt|Contacto|Contact
vcard:Organization|Organization|Organisation|Organización|Organisatie
vcard:Group|Group|Gruppe|Grupo|Groep
vcard:AddressBook|Address book|Adressbuch|Libreta de direcciones|Adresboek
vcard:Address|Address|Adresse|Dirección|Adres
vcard:Home|Home|Privat|Casa|Thuis
vcard:Work|Work|Arbeit|Trabajo|Werk
vcard:Cell|Mobile|Mobil|Móvil|Mobiel
vcard:fn|Name|Name|Nombre|Naam
vcard:given-name|Given name|Vorname|Nombre de pila|Voornaam
vcard:family-name|Family name|Nachname|Apellido|Achternaam
vcard:nickname|Nickname|Spitzname|Apodo|Bijnaam
vcard:hasPhoto|Picture|Bild|Foto|Foto
vcard:hasEmail|E-mail|E-Mail|Correo electrónico|E-mail
vcard:hasTelephone|Telephone|Telefon|Teléfono|Telefoon
vcard:hasAddress|Address|Adresse|Dirección|Adres
vcard:hasURL|Website|Webseite|Sitio web|Website
vcard:url|Website|Webseite|Sitio web|Website
vcard:hasUID|Identifier|Kennung|Identificador|Identificatie
vcard:hasMember|Member|Mitglied|Miembro|Lid
vcard:hasNote|Note|Notiz|Nota|Notitie
vcard:note|Note|Notiz|Nota|Notitie
vcard:value|Value|Wert|Valor|Waarde
vcard:bday|Birthday|Geburtstag|Cumpleaños|Verjaardag
vcard:organization-name|Organization|Organisation|Organización|Organisatie
vcard:role|Role|Funktion|Función|Functie
vcard:title|Job title|Berufsbezeichnung|Cargo|Functietitel
vcard:street-address|Street|Straße|Calle|Straat
vcard:locality|City|Ort|Ciudad|Plaats
vcard:region|Region|Region|Región|Regio
vcard:postal-code|Postal code|Postleitzahl|Código postal|Postcode
vcard:country-name|Country|Land|País|Land
schema:Person|Person|Person|Persona|Persoon
schema:Organization|Organization|Organisation|Organización|Organisatie
schema:Event|Event|Ereignis|Evento|Evenement
schema:Place|Place|Ort|Lugar|Plaats
schema:Recipe|Recipe|Rezept|Receta|Recept
schema:Book|Book|Buch|Libro|Boek
schema:Movie|Film|Film|Película|Film
schema:Article|Article|Artikel|Artículo|Artikel
schema:ImageObject|Picture|Bild|Imagen|Afbeelding
schema:name|Name|Name|Nombre|Naam
schema:description|Description|Beschreibung|Descripción|Beschrijving
schema:image|Picture|Bild|Imagen|Afbeelding
schema:url|Website|Webseite|Sitio web|Website
schema:text|Text|Text|Texto|Tekst
schema:author|Author|Verfasser|Autor|Auteur
schema:dateCreated|Created|Erstellt|Creado|Gemaakt
schema:dateModified|Changed|Geändert|Modificado|Gewijzigd
schema:datePublished|Published|Veröffentlicht|Publicado|Gepubliceerd
schema:startDate|Starts|Beginn|Comienza|Begint
schema:endDate|Ends|Ende|Termina|Eindigt
schema:location|Place|Ort|Lugar|Plaats
schema:address|Address|Adresse|Dirección|Adres
schema:email|E-mail|E-Mail|Correo electrónico|E-mail
schema:telephone|Telephone|Telefon|Teléfono|Telefoon
schema:birthDate|Birthday|Geburtstag|Fecha de nacimiento|Geboortedatum
schema:jobTitle|Job title|Berufsbezeichnung|Cargo|Functietitel
schema:knows|Knows|Kennt|Conoce a|Kent
schema:keywords|Keywords|Stichwörter|Palabras clave|Trefwoorden
schema:recipeIngredient|Ingredient|Zutat|Ingrediente|Ingrediënt
schema:recipeInstructions|Instructions|Zubereitung|Instrucciones|Bereiding
ldp:Container|Folder|Ordner|Carpeta|Map
ldp:BasicContainer|Folder|Ordner|Carpeta|Map
ldp:Resource|Resource|Ressource|Recurso|Resource
ldp:RDFSource|Linked data|Verknüpfte Daten|Datos enlazados|Gekoppelde data
ldp:NonRDFSource|File|Datei|Archivo|Bestand
ldp:contains|Contains|Enthält|Contiene|Bevat
ldp:inbox|Inbox|Posteingang|Buzón de entrada|Postvak IN
acl:Authorization|Access rule|Zugriffsregel|Regla de acceso|Toegangsregel
acl:agent|Person|Person|Persona|Persoon
acl:agentClass|Whom|Wer|Quiénes|Wie
acl:agentGroup|Group|Gruppe|Grupo|Groep
acl:AuthenticatedAgent|Anyone signed in|Alle Angemeldeten|Cualquiera con sesión|Wie is aangemeld
acl:origin|Application|Anwendung|Aplicación|Toepassing
acl:accessTo|Applies to|Gilt für|Se aplica a|Geldt voor
acl:default|Applies to everything in|Gilt für alles in|Se aplica a todo en|Geldt voor alles in
acl:mode|May|Darf|Puede|Mag
acl:Read|read|lesen|leer|lezen
acl:Write|write|schreiben|escribir|schrijven
acl:Append|add|hinzufügen|añadir|toevoegen
acl:Control|control access|Zugriff verwalten|controlar el acceso|toegang beheren
acl:trustedApp|Trusted application|Vertraute Anwendung|Aplicación de confianza|Vertrouwde toepassing
solid:account|Account|Konto|Cuenta|Account
solid:oidcIssuer|Identity provider|Identitätsanbieter|Proveedor de identidad|Identiteitsprovider
solid:owner|Owner|Eigentümer|Propietario|Eigenaar
solid:privateTypeIndex|Private type index|Privater Typindex|Índice privado|Privé-typenindex
solid:publicTypeIndex|Public type index|Öffentlicher Typindex|Índice público|Openbare typenindex
solid:TypeIndex|Type index|Typindex|Índice de tipos|Typenindex
solid:ListedDocument|Public|Öffentlich|Público|Openbaar
solid:UnlistedDocument|Private|Privat|Privado|Privé
solid:TypeRegistration|Kind of data|Art von Daten|Tipo de datos|Soort gegevens
solid:forClass|For|Für|Para|Voor
solid:instance|Document|Dokument|Documento|Document
solid:instanceContainer|Folder|Ordner|Carpeta|Map
pim:storage|Pod|Pod|Pod|Pod
pim:Storage|Pod|Pod|Pod|Pod
pim:preferencesFile|Preferences|Einstellungen|Preferencias|Voorkeuren
pim:ConfigurationFile|Preferences|Einstellungen|Preferencias|Voorkeuren
pim:workspace|Workspace|Arbeitsbereich|Espacio de trabajo|Werkruimte
as:Note|Note|Notiz|Nota|Notitie
as:Person|Person|Person|Persona|Persoon
as:Article|Article|Artikel|Artículo|Artikel
as:Announce|Announcement|Ankündigung|Anuncio|Aankondiging
as:Offer|Offer|Angebot|Oferta|Aanbod
as:Create|Creation|Erstellung|Creación|Aanmaak
as:actor|By|Von|Por|Door
as:object|Object|Objekt|Objeto|Object
as:target|Target|Ziel|Destino|Doel
as:content|Content|Inhalt|Contenido|Inhoud
as:name|Name|Name|Nombre|Naam
as:summary|Summary|Zusammenfassung|Resumen|Samenvatting
as:published|Published|Veröffentlicht|Publicado|Gepubliceerd
as:updated|Changed|Geändert|Modificado|Gewijzigd
as:to|To|An|Para|Aan
geo:Point|Point|Punkt|Punto|Punt
geo:location|Place|Ort|Lugar|Plaats
geo:lat|Latitude|Breitengrad|Latitud|Breedtegraad
geo:long|Longitude|Längengrad|Longitud|Lengtegraad
geo:alt|Altitude|Höhe|Altitud|Hoogte
stat:size|Size|Größe|Tamaño|Grootte
stat:mtime|Changed (seconds)|Geändert (Sekunden)|Modificado (segundos)|Gewijzigd (seconden)
cert:key|Key|Schlüssel|Clave|Sleutel
cert:RSAPublicKey|RSA key|RSA-Schlüssel|Clave RSA|RSA-sleutel
cert:modulus|Modulus|Modulus|Módulo|Modulus
cert:exponent|Exponent|Exponent|Exponente|Exponent
bookmark:Bookmark|Bookmark|Lesezeichen|Marcador|Bladwijzer
bookmark:recalls|Address|Adresse|Dirección|Adres
bookmark:hasTopic|Topic|Thema|Tema|Onderwerp
cal:Vevent|Event|Termin|Evento|Afspraak
cal:summary|Title|Titel|Título|Titel
cal:dtstart|Starts|Beginn|Comienza|Begint
cal:dtend|Ends|Ende|Termina|Eindigt
cal:location|Place|Ort|Lugar|Plaats
sioc:content|Content|Inhalt|Contenido|Inhoud
sioc:Post|Post|Beitrag|Publicación|Bericht
wf:Task|Task|Aufgabe|Tarea|Taak
wf:Tracker|Tracker|Aufgabenliste|Lista de tareas|Takenlijst
wf:assignee|Assigned to|Zugewiesen an|Asignado a|Toegewezen aan
wf:dueDate|Due|Fällig|Vence|Vervalt
wf:message|Message|Nachricht|Mensaje|Bericht
meeting:LongChat|Chat|Chat|Chat|Chat
ui:backgroundColor|Background colour|Hintergrundfarbe|Color de fondo|Achtergrondkleur
oidc:redirect_uris|Redirect addresses|Weiterleitungsadressen|Redirecciones|Doorstuuradressen
"""


def vocabulary_label(iri: str, language: str = "en") -> str | None:
    """The name of a term in a language of the pages, English in any other; ``None`` if unknown."""
    labels = _table().get(iri)
    if labels is None:
        return None
    return labels[_LANGUAGES.index(language) if language in _LANGUAGES else 0]


@cache
def _table() -> Mapping[str, tuple[str, ...]]:
    table = {}
    for line in _LABELS.strip().splitlines():
        name, *labels = line.split("|")
        prefix, _, local = name.partition(":")
        table[_NAMESPACES[prefix] + local] = tuple(labels)
        if prefix == "schema":  # both spellings are in use
            table[_NAMESPACES["schema-http"] + local] = tuple(labels)
    return MappingProxyType(table)


def prefixed_name(iri: str) -> str | None:
    """The customary short form of a term of a well-known vocabulary, such as ``foaf:name``."""
    for prefix, namespace in _NAMESPACES.items():
        if iri.startswith(namespace):
            return f"{prefix.removesuffix('-http')}:{iri[len(namespace) :]}"
    return None


MAX_LITERAL_CHARACTERS: Final = 2_000
MAX_NAME_CHARACTERS: Final = 120

_NAMING: Final = tuple(
    Iri(iri)
    for iri in (
        vocab.FOAF + "name",
        vocab.VCARD + "fn",
        vocab.SCHEMA + "name",
        vocab.SCHEMA_HTTP + "name",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        vocab.RDFS + "label",
        vocab.DCTERMS_TITLE,
        "http://purl.org/dc/elements/1.1/title",
        vocab.AS + "name",
        "http://www.w3.org/2002/12/cal/ical#summary",
    )
)
"""The properties that name their subject, the first that is present wins."""

_ANONYMOUS: Final = frozenset({"me", "this", "it", "i", "id", "card"})
"""Fragments for the thing that a document is about; the document's own name says more."""


def name_in(graph: Graph, subject: Subject, language: str) -> str | None:
    """The name that the document itself gives to a subject, in the reader's language if
    possible."""
    description = graph.about(subject)
    for predicate in _NAMING:
        names = [name for name in description.get(predicate, ()) if isinstance(name, Literal)]
        if names:
            chosen = min(names, key=lambda name: _preference(name, language))
            text = " ".join(chosen.value.split())
            if text:
                return shortened(text, MAX_NAME_CHARACTERS)
    return None


def _preference(name: Literal, language: str) -> int:
    tag = (name.language or "").partition("-")[0]
    return (language, "", "en").index(tag) if tag in (language, "", "en") else 3


def name_of_iri(iri: str, language: str) -> str:
    """A term of a known vocabulary in words, and otherwise the telling part of an IRI."""
    return vocabulary_label(iri, language) or last_segment(iri)


def last_segment(iri: str) -> str:
    """The fragment or last segment of an IRI, by which people recognise it."""
    fragment = iri.rpartition("#")[2] if "#" in iri else ""
    if fragment and fragment not in _ANONYMOUS:
        return shortened(_readable(fragment), MAX_NAME_CHARACTERS)
    rest = iri.partition("#")[0].rstrip("/")
    scheme, separator, after = rest.partition("://")
    if not separator:
        for scheme in ("mailto:", "tel:"):
            iri = iri.removeprefix(scheme)
        return shortened(iri, MAX_NAME_CHARACTERS)
    last = after.rpartition("/")[2]
    return shortened(_readable(last) or scheme, MAX_NAME_CHARACTERS)


def _readable(segment: str) -> str:
    """The segment decoded, unless that would hide what it is."""
    try:
        decoded = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return segment
    return decoded if decoded.isprintable() else segment


def term_text(iri: str) -> str:
    """An IRI as a table of statements shows it."""
    return shortened(prefixed_name(iri) or iri, MAX_LITERAL_CHARACTERS)


def subject_text(subject: Subject) -> str:
    """A subject as a table of statements shows it."""
    return f"_:{subject.value[:40]}" if isinstance(subject, BlankNode) else term_text(subject.value)


def shortened(text: str, characters: int) -> str:
    """The beginning of a text, with an ellipsis if there is more."""
    return text if len(text) <= characters else text[: characters - 1] + "…"
