// The REST of this server, as any client could use it.
//
// Knows no session's state and shows nothing. Every failure is an ApiError whose message can be
// read by people.

export class ApiError extends Error {
  constructor(message, status = 0, body = null) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.body = body;
  }
}

const SESSION_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

export function isSessionId(id) {
  return SESSION_ID.test(id);
}

export const about = () => ask('GET', '/about');
export const models = () => ask('GET', '/models');

export function sessions({ search = '', limit = 50, before = '' } = {}) {
  return ask('GET', `/sessions${query({ search, limit, before })}`);
}

/// `settings`: cwd, model, agent, permission_mode and title, all optional.
export function create(settings) {
  const given = Object.entries(settings ?? {}).filter(([, value]) => value);
  return ask('POST', '/sessions', Object.fromEntries(given));
}

export const rename = (id, title) => ask('PATCH', of(id), { title });
export const archive = (id) => ask('DELETE', of(id));
export const fork = (id, at) => ask('POST', `${of(id)}:fork${query({ at })}`);
export const undo = (id, which = {}) => ask('POST', `${of(id)}:undo${query(which)}`);
export const context = (id) => ask('GET', `${of(id)}:context`);

export function frames(id, { dialect = 'unified', before, limit } = {}) {
  return ask('GET', `${of(id)}/frames${query({ dialect, before, limit })}`);
}

function of(id) {
  return `/sessions/${encodeURIComponent(id)}`;
}

/// Percent-encoded throughout: the server takes a plus sign for a plus sign.
export function query(parts) {
  const given = Object.entries(parts).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  return given.length
    ? `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
    : '';
}

async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'same-origin',
      cache: 'no-store',
    });
  } catch {
    throw new ApiError('The server cannot be reached. Is it running?');
  }
  const text = await response.text();
  const answer = read(text);
  if (response.ok) return answer;
  throw new ApiError(sentence(response.status, answer), response.status, answer);
}

function read(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

function sentence(status, answer) {
  if (status === 401) return 'The server wants its token. Load the page again to enter it.';
  return answer?.error ? String(answer.error) : `The server answered ${status}.`;
}
