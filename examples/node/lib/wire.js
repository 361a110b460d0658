'use strict';
// From a line to a message: a request, a notification or a response, or what is wrong with it.

const json = require('./json.js');
const { readHead } = require('./head.js');

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

/** A line that is no message: the code and id to answer it with, if it is a request. */
class Malformed extends Error {
  constructor(code, reason, id, isRequest) {
    super(reason);
    this.code = code;
    this.id = id; // undefined if there is none
    this.isRequest = isRequest;
  }

  /** What becomes of it: how it is answered, or which call of ours fails. */
  get outcome() {
    if (this.id === undefined) return { answer: null, fails: null };
    if (this.isRequest) return { answer: { id: this.id, code: this.code }, fails: null };
    return { answer: null, fails: this.id };
  }
}

const has = (object, name) => Object.hasOwn(object, name);
const isText = (value) => typeof value === 'string';
const isId = (value) => isText(value) || typeof value === 'bigint' || Number.isInteger(value);
const isNested = (value) => value !== null && typeof value === 'object' && !(value instanceof json.Float);
const isBlank = (line) => line.every((byte) => [0x20, 0x09, 0x0d, 0x0a].includes(byte));

/**
 * The message on a line; null for a blank one. Throws Malformed.
 *
 * `tolerate(requirement)` is told of each spelling of the field that is read all the same; in strict
 * mode it throws.
 */
function readMessage(line, tolerate = () => {}) {
  if (isBlank(line)) return null;
  let frame;
  try {
    frame = json.readBytes(line);
  } catch (fault) {
    const head = readHead(line);
    throw new Malformed(PARSE_ERROR, fault.message, head.id, head.isRequest);
  }
  if (frame === null || typeof frame !== 'object' || Array.isArray(frame)) {
    throw new Malformed(PARSE_ERROR, 'no object', undefined, false);
  }
  const isRequest = has(frame, 'method');
  const refuse = (reason) => {
    const echoed = isNested(frame.id) ? (isRequest ? null : undefined) : frame.id;
    const id = has(frame, 'id') ? echoed : undefined;
    return new Malformed(INVALID_REQUEST, reason, id, isRequest);
  };
  const accept = (requirement, reason) => {
    try {
      tolerate(requirement);
    } catch {
      throw refuse(reason);
    }
  };
  if (!has(frame, 'jsonrpc')) accept('WIRE-001', 'there is no "jsonrpc"');
  else if (frame.jsonrpc !== '2.0') accept('WIRE-006', '"jsonrpc" is not "2.0"');
  if (isNested(frame.id)) {
    throw refuse('an id is no array and no object');
  }
  return isRequest ? request(frame, refuse, accept) : response(frame, refuse, accept);
}

function request(frame, refuse, accept) {
  if (!isText(frame.method)) throw refuse('a method is a string');
  if (has(frame, '__file_transport') || has(frame, '__trans_file__')) {
    throw refuse('a pointer is never taken for a request');
  }
  if (has(frame, 'id') && !isId(frame.id)) accept('WIRE-002', 'an id is an integer or a string');
  return picked(frame, ['id', 'method', 'params', 'result', 'error']);
}

function response(frame, refuse, accept) {
  const message = picked(frame, ['id', 'result', 'error']);
  if (has(message, 'result') && has(message, 'error')) {
    if (message.error === null) {
      accept('WIRE-003', 'a result comes with an error of null');
      delete message.error;
    } else if (message.result === null) {
      accept('WIRE-004', 'an error comes with a result of null');
      delete message.result;
    } else {
      throw refuse('both a result and an error');
    }
  }
  if (has(frame, '__file_transport')) {
    message.pointer = frame.__file_transport;
  } else if (has(frame, '__trans_file__')) {
    accept('WIRE-005', 'a file pointer is spelled __trans_file__');
    message.pointer = frame.__trans_file__;
  }
  const told = has(message, 'result') || has(message, 'error');
  if (has(message, 'pointer')) {
    if (told) throw refuse('a pointer stands alone');
    if (!isText(message.pointer)) throw refuse('a pointer is a string');
  } else if (!told) {
    throw refuse('neither a method nor a result nor an error');
  }
  if (!has(message, 'id')) throw refuse('a response without an id');
  return message;
}

function picked(frame, names) {
  return Object.fromEntries(names.filter((name) => has(frame, name)).map((name) => [name, frame[name]]));
}

module.exports = { INVALID_REQUEST, Malformed, PARSE_ERROR, readMessage };
