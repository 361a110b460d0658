"""What both ends of a connection share of asyncio: streams, writer, peer, in-memory pair."""
