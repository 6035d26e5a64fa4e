"""Documents in the shapes in which applications write them."""

from __future__ import annotations

ADDRESS_BOOK = """
@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. @prefix dc: <http://purl.org/dc/elements/1.1/>.
<#this> a vcard:AddressBook; dc:title "Friends"; vcard:nameEmailIndex <people.ttl>;
    vcard:groupIndex <groups.ttl>.
"""
PEOPLE = """
@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.
<Person/1/index.ttl#this> vcard:inAddressBook <index.ttl#this>; vcard:fn "Carla Diaz".
"""
CONTACT = """
@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. @prefix dct: <http://purl.org/dc/terms/>.
@prefix ex: <https://example.org/>.
<> dct:created "2024-01-01T00:00:00Z".
<#this> a vcard:Individual; vcard:fn "Carla Diaz"; vcard:hasEmail <#id1>, [
    a vcard:Work; vcard:value <mailto:carla@work.example>]; vcard:hasTelephone [
    a vcard:Cell; vcard:value <tel:+491234>]; vcard:bday "1980-05-12"; ex:shoe 39.
<#id1> a vcard:Home; vcard:value <mailto:carla@example.org>.
"""
EVENTS = """
@prefix schema: <http://schema.org/>. @prefix xsd: <http://www.w3.org/2001/XMLSchema#>.
@prefix ical: <http://www.w3.org/2002/12/cal/ical#>.
@prefix as: <https://www.w3.org/ns/activitystreams#>.
<#a> a schema:Event; schema:name "Picnic";
    schema:startDate "2099-06-01T12:30:00+02:00"^^xsd:dateTime;
    schema:location [ a schema:Place; schema:name "The park" ]; schema:organizer <#me>.
<#b> a ical:Vevent; ical:summary "Dentist"; ical:dtstart [ ical:dateTime
    "2099-05-01T08:00:00Z"^^xsd:dateTime ]; ical:rrule "FREQ=YEARLY".
<#c> a as:Event; as:name "Concert"; as:startTime "2001-01-01"^^xsd:date.
"""
NOTES = """
@prefix schema: <http://schema.org/>. @prefix as: <https://www.w3.org/ns/activitystreams#>.
<#1> a schema:TextDigitalDocument; schema:text "Milk\\nBread"; schema:dateCreated "2020".
<#2> a as:Note; as:name "Idea"; as:content "A <b>bold</b> one".
"""
BOOKMARKS = """
@prefix bookmark: <http://www.w3.org/2002/01/bookmark#>. @prefix dct: <http://purl.org/dc/terms/>.
@prefix schema: <https://schema.org/>.
<#1> a bookmark:Bookmark; dct:title "Example"; bookmark:recalls <https://example.org/>;
    bookmark:hasTopic "Search".
<#2> a bookmark:Bookmark; bookmark:title "As text"; bookmark:recalls "https://example.net/a".
<#3> a schema:BookmarkAction; schema:object [ schema:url <https://example.com/b>;
    schema:name "Inside" ]; schema:name "An action".
"""
TYPE_INDEX = """
@prefix solid: <http://www.w3.org/ns/solid/terms#>.
@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. @prefix schema: <http://schema.org/>.
<> a solid:TypeIndex, solid:UnlistedDocument.
<#contacts> a solid:TypeRegistration; solid:forClass vcard:AddressBook;
    solid:instance <../Contacts/index.ttl#this>.
<#events> a solid:TypeRegistration; solid:forClass schema:Event; solid:instance <../events.ttl>.
"""
PAD = """
@prefix pim: <http://www.w3.org/ns/pim/space#>. @prefix dc: <http://purl.org/dc/elements/1.1/>.
@prefix sioc: <http://rdfs.org/sioc/ns#>.
<#this> a pim:Notepad; dc:title "Shared notes"; dc:author </profile/card#me>; pim:next <#l1>.
<#l1> sioc:content "Alfa"; dc:author </profile/card#me>; pim:next <#l2>.
<#l2> dc:content "Bravo"; pim:next <#this>.
"""
