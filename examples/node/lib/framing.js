'use strict';
// From bytes to lines: split at LF and at nothing else, within a bound.

const MAX_LINE = 16 * 1024 * 1024;
const HEAD_BYTES = 2048;
const LF = 0x0a;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** A line over the cap: its first bytes, and how long it was. It was not kept whole. */
class Oversized {
  constructor(head, size) {
    this.head = head;
    this.size = size;
  }
}

class LineSplitter {
  constructor(maxLine = MAX_LINE) {
    this.maxLine = maxLine;
    this.parts = []; // of the line that has not ended
    this.held = 0;
    this.dropped = 0; // of a line that is drained
    this.head = Buffer.alloc(0);
    this.fresh = true; // a byte order mark may still come
  }

  /** The lines that these bytes finish, each without its LF. */
  feed(bytes) {
    let data = bytes;
    if (this.fresh) {
      data = Buffer.concat([...this.parts, data]);
      this.parts = [];
      this.held = 0;
      if (data.length < BOM.length && BOM.subarray(0, data.length).equals(data)) {
        this.hold(data);
        return [];
      }
      this.fresh = false;
      if (data.subarray(0, BOM.length).equals(BOM)) data = data.subarray(BOM.length);
    }
    const lines = [];
    let start = 0;
    for (let end = data.indexOf(LF); end >= 0; end = data.indexOf(LF, start)) {
      this.hold(data.subarray(start, end));
      lines.push(this.finished());
      start = end + 1;
    }
    if (start < data.length) this.hold(data.subarray(start));
    return lines;
  }

  /** The stream has ended: what is left without an LF, or null. */
  end() {
    const rest = this.finished();
    return rest instanceof Oversized || rest.length > 0 ? rest : null;
  }

  hold(piece) {
    if (this.dropped > 0) {
      this.dropped += piece.length;
      return;
    }
    this.parts.push(piece);
    this.held += piece.length;
    if (this.held > this.maxLine) {
      this.head = Buffer.concat(this.parts).subarray(0, HEAD_BYTES);
      this.dropped = this.held;
      this.parts = [];
      this.held = 0;
    }
  }

  finished() {
    const line = this.dropped > 0 ? new Oversized(this.head, this.dropped) : Buffer.concat(this.parts);
    this.parts = [];
    this.held = 0;
    this.dropped = 0;
    return line;
  }
}

module.exports = { HEAD_BYTES, LineSplitter, MAX_LINE, Oversized };
