-- Sessions and their resume tokens. `tally` counts open actions by state, so that what a
-- session shows costs the same however many actions it has.

insert into counters values ('session', 0);

create table sessions (
    n integer primary key,
    session_id text not null unique,
    tenant text not null,
    initiator text not null,
    responder text not null,
    label text not null default '',
    state text not null,
    outcome text,
    events integer not null,
    floor integer not null default 0,
    tally text not null default '{}',
    created_ms integer not null,
    updated_ms integer not null,
    ended_ms integer
) strict;

create index sessions_by_tenant on sessions (tenant);
create index sessions_by_state on sessions (state, tenant);
create index sessions_by_initiator on sessions (initiator, tenant);
create index sessions_by_responder on sessions (responder, tenant);
create index sessions_to_settle on sessions (ended_ms)
    where ended_ms is not null and state <> 'settled';
create index sessions_settled on sessions (ended_ms) where state = 'settled';

-- Hashes only. `nonce` is what, with the old token that its client holds, gives the new one;
-- it is kept for the resume window or until the new token is used.
create table resume_tokens (
    token_hash text primary key,
    session integer not null references sessions (n) on delete cascade,
    chain text not null,
    principal text not null,
    state text not null,
    predecessor text,
    created_ms integer not null,
    expires_ms integer not null,
    used_ms integer,
    attempt_hash text,
    nonce text
) strict, without rowid;

create index tokens_by_session on resume_tokens (session);
create index tokens_by_chain on resume_tokens (chain);
