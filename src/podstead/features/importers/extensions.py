"""Determines the media type of a file by its extension.

Other Solid servers take it from the table of the npm package ``mime-types``. The table here agrees
with it (a test compares them) and has the types that people keep in pods; others are reported, not
guessed.
"""

from __future__ import annotations

from typing import Final

OCTET_STREAM: Final = "application/octet-stream"

_BY_TYPE: Final = """
application/atom+xml atom
application/epub+zip epub
application/geo+json geojson
application/gpx+xml gpx
application/gzip gz
application/java-archive jar
application/json json map
application/json5 json5
application/ld+json jsonld
application/mathml+xml mathml
application/mbox mbox
application/mp4 mp4s m4p
application/msword doc dot
application/n-quads nq
application/n-triples nt
application/node cjs
application/octet-stream bin dms lrf mar so dist pkg dump deploy img buffer
application/ogg ogx
application/pdf pdf
application/pgp-encrypted pgp
application/pgp-keys asc
application/pgp-signature sig
application/pkcs10 p10
application/pkcs7-mime p7m p7c
application/pkcs7-signature p7s
application/pkcs8 p8
application/pkix-cert cer
application/pkix-crl crl
application/postscript ai eps ps
application/rdf+xml rdf owl
application/rss+xml rss
application/rtf rtf
application/smil+xml smi smil
application/sparql-query rq
application/sparql-results+xml srx
application/tei+xml tei teicorpus
application/sql sql
application/toml toml
application/trig trig
application/ttml+xml ttml
application/vnd.amazon.ebook azw
application/vnd.android.package-archive apk
application/vnd.apple.keynote key
application/vnd.apple.mpegurl m3u8
application/vnd.apple.numbers numbers
application/vnd.apple.pages pages
application/vnd.apple.pkpass pkpass
application/vnd.google-earth.kml+xml kml
application/vnd.google-earth.kmz kmz
application/vnd.ms-excel xls xlm xla xlc xlt xlw
application/vnd.ms-excel.sheet.macroenabled.12 xlsm
application/vnd.ms-fontobject eot
application/vnd.ms-outlook msg
application/vnd.ms-powerpoint ppt pps pot
application/vnd.ms-powerpoint.presentation.macroenabled.12 pptm
application/vnd.ms-project mpt
application/vnd.ms-word.document.macroenabled.12 docm
application/vnd.oasis.opendocument.chart odc
application/vnd.oasis.opendocument.database odb
application/vnd.oasis.opendocument.formula odf
application/vnd.oasis.opendocument.graphics odg
application/vnd.oasis.opendocument.graphics-template otg
application/vnd.oasis.opendocument.image odi
application/vnd.oasis.opendocument.presentation odp
application/vnd.oasis.opendocument.presentation-template otp
application/vnd.oasis.opendocument.spreadsheet ods
application/vnd.oasis.opendocument.spreadsheet-template ots
application/vnd.oasis.opendocument.text odt
application/vnd.oasis.opendocument.text-master odm
application/vnd.oasis.opendocument.text-template ott
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/vnd.openxmlformats-officedocument.presentationml.slideshow ppsx
application/vnd.openxmlformats-officedocument.presentationml.template potx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.openxmlformats-officedocument.spreadsheetml.template xltx
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.openxmlformats-officedocument.wordprocessingml.template dotx
application/vnd.rar rar
application/vnd.recordare.musicxml mxl
application/vnd.recordare.musicxml+xml musicxml
application/vnd.tcpdump.pcap pcap cap dmp
application/vnd.visio vsd vst vss vsw
application/vnd.wordperfect wpd
application/wasm wasm
application/x-7z-compressed 7z
application/x-bittorrent torrent
application/x-bzip bz
application/x-bzip2 bz2 boz
application/x-chess-pgn pgn
application/x-chrome-extension crx
application/x-csh csh
application/x-debian-package deb udeb
application/x-dvi dvi
application/x-gnumeric gnumeric
application/x-gtar gtar
application/x-hdf hdf
application/x-httpd-php php
application/x-iso9660-image iso
application/x-java-jnlp-file jnlp
application/x-keepass2 kdbx
application/x-latex latex
application/x-mobipocket-ebook mobi
application/x-perl pl pm
application/x-pkcs12 p12 pfx
application/x-redhat-package-manager rpm
application/x-research-info-systems ris
application/x-sh sh
application/x-shockwave-flash swf
application/x-tar tar
application/x-tcl tcl tk
application/x-tex tex
application/x-texinfo texinfo texi
application/x-x509-ca-cert der crt pem
application/x-xpinstall xpi
application/x-xz xz
application/xhtml+xml xhtml xht
application/xml xml xsl xsd rng
application/xml-dtd dtd
application/xslt+xml xslt
application/zip zip
audio/aac adts aac
audio/amr amr
audio/basic au snd
audio/midi mid midi kar rmi
audio/mp4 m4a mp4a
audio/mpeg mpga mp2 mp2a mp3 m2a m3a
audio/ogg oga ogg spx opus
audio/wav wav
audio/webm weba
audio/x-aiff aif aiff aifc
audio/x-flac flac
audio/x-matroska mka
audio/x-mpegurl m3u
audio/x-ms-wma wma
font/collection ttc
font/otf otf
font/ttf ttf
font/woff woff
font/woff2 woff2
image/apng apng
image/avif avif
image/bmp bmp dib
image/gif gif
image/heic heic
image/heif heif
image/ief ief
image/jp2 jp2 jpg2
image/jpeg jpeg jpg jpe
image/jxl jxl
image/ktx ktx
image/png png
image/svg+xml svg svgz
image/tiff tif tiff
image/vnd.adobe.photoshop psd
image/vnd.djvu djvu djv
image/vnd.dwg dwg
image/vnd.dxf dxf
image/vnd.microsoft.icon ico
image/webp webp
image/x-cmu-raster ras
image/x-portable-anymap pnm
image/x-portable-bitmap pbm
image/x-portable-graymap pgm
image/x-portable-pixmap ppm
image/x-rgb rgb
image/x-tga tga
image/x-xbitmap xbm
image/x-xpixmap xpm
message/rfc822 eml mime
model/gltf+json gltf
model/gltf-binary glb
model/obj obj
model/stl stl
model/vrml wrl vrml
text/cache-manifest appcache manifest
text/calendar ics ifb
text/coffeescript coffee litcoffee
text/css css
text/csv csv
text/html html htm shtml
text/jade jade
text/javascript js mjs
text/jsx jsx
text/less less
text/markdown md markdown
text/mdx mdx
text/n3 n3
text/plain txt text conf def list log in ini
text/richtext rtx
text/sgml sgml sgm
text/shex shex
text/stylus styl stylus
text/tab-separated-values tsv
text/troff t tr roff man me ms
text/turtle ttl
text/uri-list uri uris urls
text/vcard vcard
text/vtt vtt
text/x-asm s asm
text/x-c c cc cxx cpp h hh dic
text/x-fortran f for f77 f90
text/x-handlebars-template hbs
text/x-java-source java
text/x-lua lua
text/x-nfo nfo
text/x-opml opml
text/x-pascal p pas
text/x-sass sass
text/x-scss scss
text/x-setext etx
text/x-uuencode uu
text/x-vcalendar vcs
text/x-vcard vcf
text/yaml yaml yml
video/3gpp 3gp 3gpp
video/3gpp2 3g2
video/h264 h264
video/jpeg jpgv
video/mp2t ts m2t m2ts
video/mp4 mp4 mp4v mpg4
video/mpeg mpeg mpg mpe m1v m2v
video/ogg ogv
video/quicktime qt mov
video/webm webm
video/x-f4v f4v
video/x-flv flv
video/x-m4v m4v
video/x-matroska mkv mk3d mks
video/x-ms-asf asf asx
video/x-ms-wmv wmv
video/x-msvideo avi
"""
_TYPES: Final = {
    extension: line.split()[0]
    for line in _BY_TYPE.strip().splitlines()
    for extension in line.split()[1:]
}


def extension_of(name: str) -> str:
    """The extension of a file name in lower case, without the dot; empty if it has none."""
    _, dot, extension = name.rpartition(".")
    return extension.lower() if dot else ""


def type_by_extension(extension: str) -> str | None:
    """The media type; ``None`` for an extension that is not known."""
    return _TYPES.get(extension)
