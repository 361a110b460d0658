'use strict';
// Whose a line is that cannot be read: its id, and whether it is a request, from its first bytes.
//
// Names of the top level only; no value is believed whose end was not seen.

const json = require('./json.js');
const { HEAD_BYTES } = require('./framing.js');

const SPACE = [0x20, 0x09, 0x0d, 0x0a];
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** {id, isRequest}; `id` is undefined if there is none that may be believed. */
function readHead(line) {
  const data = line.subarray(0, HEAD_BYTES);
  let token = null;
  let isRequest = false;
  let before = '{';
  let at = skipSpace(data, 0);
  while (data[at] === before.charCodeAt(0)) {
    before = ',';
    at = skipSpace(data, at + 1);
    let end = stringEnd(data, at);
    if (end < 0) break;
    const name = decoded(data.subarray(at, end));
    at = skipSpace(data, end);
    if (data[at] !== 0x3a) break; // a colon
    isRequest = isRequest || name === 'method';
    at = skipSpace(data, at + 1);
    end = valueEnd(data, at);
    if (end < 0) break;
    if (name === 'id') token = data.subarray(at, end);
    at = skipSpace(data, end);
  }
  const id = token === null ? undefined : decoded(token);
  const proper = typeof id === 'string' || typeof id === 'bigint' || Number.isInteger(id);
  return { id: proper ? id : undefined, isRequest };
}

function decoded(bytes) {
  try {
    return json.readBytes(bytes);
  } catch {
    return undefined;
  }
}

function skipSpace(data, from) {
  let at = from;
  while (at < data.length && SPACE.includes(data[at])) at += 1;
  return at;
}

/** The position after the string that begins here; -1 if none does, or if it is cut off. */
function stringEnd(data, from) {
  if (data[from] !== QUOTE) return -1;
  for (let at = from + 1; at < data.length; at += data[at] === BACKSLASH ? 2 : 1) {
    if (data[at] === QUOTE) return at + 1;
  }
  return -1;
}

/** The position after the value that begins here; -1 if it is cut off. */
function valueEnd(data, from) {
  if (data[from] === QUOTE) return stringEnd(data, from);
  let at = from;
  if (data[at] !== 0x7b && data[at] !== 0x5b) {
    while (at < data.length && !',]}'.includes(String.fromCharCode(data[at])) && !SPACE.includes(data[at])) {
      at += 1;
    }
    return at < data.length ? at : -1; // at the end of the head a number may go on
  }
  let depth = 0;
  while (at < data.length) {
    if (data[at] === QUOTE) {
      at = stringEnd(data, at);
      if (at < 0) return -1;
      continue;
    }
    if (data[at] === 0x7b || data[at] === 0x5b) depth += 1;
    if (data[at] === 0x7d || data[at] === 0x5d) depth -= 1;
    at += 1;
    if (depth === 0) return at;
  }
  return -1;
}

module.exports = { readHead };
