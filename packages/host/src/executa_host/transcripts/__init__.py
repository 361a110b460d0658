"""Transcripts: what plugins and host said to each other, in a file, and what is made of it.

`recorder` writes one (through `redaction`, so that no secret gets into it), `reading` reads
it, `model` makes a tree of it for the viewers, `page` draws that as one HTML page, and
`player` plays one side of it again. The format is in ``docs/transcripts.md``.
"""
