"""The limits within which a file is read."""

READERS_MAX = 3  # of one web process at a time: each may take MEMORY_BYTES
WAIT_S = 30  # for a place among them
WALL_S = 25  # a reader that takes longer is ended
CPU_S = 20
MEMORY_BYTES = 1_500_000_000  # address space of a reader, its libraries included
IMAGE_PIXELS_MAX = 60_000_000  # more is refused before it is decoded: a bomb, or a scan of a wall
IMAGE_EDGE_PX = 1568  # what the provider scales longer ones down to; platform.claude.com, Vision
IMAGE_BYTES_MAX = 1_500_000  # a picture that is kept; more is packed as JPEG
JPEG_QUALITY, PACKED_QUALITY = 88, 82
TEXT_MAX_CHARS = 80_000  # of the text found in one file; the rest stays in the file
PDF_PAGES_READ = 300
PDF_TEXT_S = 12  # after so long no further page is read
ZIP_ENTRIES_MAX = 3_000
ZIP_BYTES_MAX = 200_000_000  # unpacked, as the archive itself declares; it cannot unpack to more
ZIP_RATIO_MAX = 300  # of one entry of more than a megabyte
SHEETS_MAX = 30
COLUMNS_MAX = 200
EMPTY_ROWS_MAX = 1_000  # so many in a row end a sheet
