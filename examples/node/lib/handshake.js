'use strict';
// initialize: what a host offers, and what a plugin takes.

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const isVersion = (value) => value === '2.0' || value === '2.1';

class NoHandshake extends Error {}

/** What a host offers, by capability. Throws NoHandshake for params that are to be refused. */
function readOffer(params) {
  if (!isObject(params)) throw new NoHandshake('params is no object');
  if (typeof params.protocolVersion !== 'string' || !/^(1\.1|2\.[01])$/.test(params.protocolVersion)) {
    throw new NoHandshake('protocolVersion: expected "2.0", "2.1" or "1.1"');
  }
  return given(params.capabilities);
}

/** What a plugin answered: the version, what it took, who it is. NoHandshake means 1.1. */
function readAnswer(result, tolerate = () => {}) {
  if (!isObject(result) || !isVersion(result.protocolVersion)) {
    throw new NoHandshake('protocolVersion is neither "2.0" nor "2.1"');
  }
  let named = result.server_info;
  if (named === undefined && result.serverInfo !== undefined) {
    tolerate('HAND-001');
    named = result.serverInfo;
  }
  const options = taken(result, tolerate);
  return { version: result.protocolVersion, options, server: server(named, tolerate) };
}

function taken(result, tolerate) {
  let { capabilities } = result;
  if (Array.isArray(capabilities)) {
    tolerate('HAND-003');
    capabilities = Object.fromEntries(capabilities.map((name) => [name, {}]));
  } else if (capabilities !== undefined && !isObject(capabilities)) {
    tolerate('HAND-004');
  }
  if (result.client_capabilities !== undefined) tolerate('HAND-002');
  return { ...given(result.client_capabilities), ...given(capabilities) };
}

/** The members that stand for something: false and null are as if they were not there. */
function given(capabilities) {
  if (!isObject(capabilities)) return {};
  return Object.fromEntries(
    Object.entries(capabilities).filter(([, value]) => value !== false && value !== null),
  );
}

function server(named, tolerate) {
  if (named === undefined) return null;
  const texts = isObject(named) && [named.name, named.version ?? ''].every((one) => typeof one === 'string');
  if (!texts) {
    tolerate('HAND-005');
    return null;
  }
  return { name: named.name, version: named.version ?? '' };
}

module.exports = { NoHandshake, readAnswer, readOffer };
