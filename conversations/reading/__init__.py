"""Looks into files of strangers, each in a process of its own (see child.py).

`images`, `pdfs`, `documents` and `sheets` each read one kind: bytes in, a `Reading` out. None of
them opens an address, runs a macro or follows a reference out of the file.
"""
