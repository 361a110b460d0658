'use strict';
// JSON as the wire has it: read and written exactly.
//
// `JSON.parse` rounds integers beyond 2^53, takes lone surrogates, and has no bound on nesting. This
// reader keeps such integers as BigInt, refuses what a frame may not hold, and stops at a depth.

const MAX_DEPTH = 128;

class JsonError extends Error {}

/** A whole number that was written with a fraction or an exponent: 7.0 is not 7 where it is an id. */
class Float extends Number {
  constructor(value, text) {
    super(value);
    this.text = text;
  }
}

const SPACE = new Set([' ', '\t', '\r', '\n']);
const ESCAPES = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  whole() {
    const value = this.value(0);
    this.space();
    if (this.at < this.text.length) throw this.fault('something follows the value');
    return value;
  }

  fault(words) {
    return new JsonError(`${words} (character ${this.at})`);
  }

  space() {
    while (SPACE.has(this.text[this.at])) this.at += 1;
  }

  value(depth) {
    this.space();
    const first = this.text[this.at];
    if (first === '{') return this.object(depth + 1);
    if (first === '[') return this.array(depth + 1);
    if (first === '"') return this.string();
    for (const [word, value] of [['true', true], ['false', false], ['null', null]]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  deeper(depth) {
    if (depth > MAX_DEPTH) throw this.fault(`nested deeper than ${MAX_DEPTH}`);
    this.at += 1;
    this.space();
  }

  object(depth) {
    this.deeper(depth);
    const members = {};
    if (this.taken('}')) return members;
    do {
      this.space();
      if (this.text[this.at] !== '"') throw this.fault('a name is due');
      const name = this.string();
      this.space();
      if (!this.taken(':')) throw this.fault('a colon is due');
      // As a plain member, also if it is called __proto__. Of names that occur twice the last wins.
      Object.defineProperty(members, name, {
        value: this.value(depth), enumerable: true, configurable: true, writable: true,
      });
      this.space();
    } while (this.taken(','));
    if (!this.taken('}')) throw this.fault('the object does not end');
    return members;
  }

  array(depth) {
    this.deeper(depth);
    const items = [];
    if (this.taken(']')) return items;
    do {
      items.push(this.value(depth));
      this.space();
    } while (this.taken(','));
    if (!this.taken(']')) throw this.fault('the array does not end');
    return items;
  }

  taken(character) {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  string() {
    let read = '';
    this.at += 1;
    for (;;) {
      const start = this.at;
      while (this.at < this.text.length && !'"\\'.includes(this.text[this.at])) {
        if (this.text[this.at] < ' ') throw this.fault('a control character in a string');
        this.at += 1;
      }
      read += this.text.slice(start, this.at);
      if (this.at >= this.text.length) throw this.fault('the string does not end');
      if (this.taken('"')) break;
      read += this.escape();
    }
    if (LONE_SURROGATE.test(read)) throw this.fault('half of a surrogate pair');
    return read;
  }

  escape() {
    const kind = this.text[this.at + 1];
    if (kind === 'u') {
      const digits = this.text.slice(this.at + 2, this.at + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.fault('four digits are due');
      this.at += 6;
      return String.fromCharCode(parseInt(digits, 16));
    }
    if (!Object.hasOwn(ESCAPES, kind ?? '')) throw this.fault('no such escape');
    this.at += 2;
    return ESCAPES[kind];
  }

  number() {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (found === null) throw this.fault('a value is due');
    const [text, fraction, exponent] = found;
    this.at += text.length;
    const value = Number(text);
    if (!Number.isFinite(value)) {
      throw this.fault('a number larger than any double');
    }
    if (fraction !== undefined || exponent !== undefined) {
      return Number.isInteger(value) ? new Float(value, text) : value;
    }
    return Number.isSafeInteger(value) ? value : BigInt(text);
  }
}

/** The value in a text. Throws JsonError for what a frame may not hold. */
function read(text) {
  return new Reader(text).whole();
}

/** The value in bytes, which have to be UTF-8. */
function readBytes(bytes) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new JsonError('no UTF-8');
  }
  return read(text);
}

/** A value as JSON on one line. BigInts are integers; what JSON cannot hold is an error. */
function write(value) {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new JsonError(`${value} cannot be written`);
  }
  if (value instanceof Float) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => write(item ?? null)).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

module.exports = { Float, JsonError, read, readBytes, write };
