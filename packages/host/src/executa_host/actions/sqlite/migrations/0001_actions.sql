-- Actions, their log, receipts and idempotency keys.
--
-- `n` numbers are keys inside this file, taken from `counters`; ids are what the world sees.
-- What changes with every move is in `actions`, what never changes in `requests`, so that a
-- move does not rewrite an input.

create table counters (
    name text primary key,
    value integer not null
) strict, without rowid;

-- `ended` counts what retention may take; the others give out numbers.
insert into counters values ('action', 0), ('event', 0), ('ended', 0);

create table actions (
    n integer primary key,
    action_id text not null unique,
    tenant text not null,
    principal text not null,
    subject text not null,
    capability text not null,
    session integer,
    transaction_id text,
    state text not null,
    fence integer not null default 0,
    attempt integer not null default 1,
    approval_status text,
    events integer not null,
    chunks integer not null default 0,
    accepted_ms integer not null,
    updated_ms integer not null,
    started_ms integer,
    ended_ms integer,
    not_before_ms integer not null default 0,
    expires_ms integer not null default 0,
    op integer not null,
    approval text,
    cancellation text,
    dead_letter text,
    last_error text,
    result text
) strict;

-- Each of these ends with the row's `n`: a page of a filter is one range of its index.
create index actions_by_tenant on actions (tenant);
create index actions_by_state on actions (state, tenant);
create index actions_by_capability on actions (capability, tenant);
create index actions_by_principal on actions (principal, tenant);
create index actions_by_subject on actions (subject, tenant) where subject <> principal;
create index actions_by_session on actions (session) where session is not null;
create index actions_by_transaction on actions (transaction_id, tenant)
    where transaction_id is not null;
create index actions_by_approval on actions (approval_status, tenant)
    where approval_status is not null;
create index actions_by_end on actions (ended_ms) where ended_ms is not null;

create table requests (
    action integer primary key references actions (n) on delete cascade,
    terms text not null,
    input text not null
) strict;

-- One log for everything; an action's events are numbered by `number`, a session's by
-- `session_number`, each from 1 without a gap.
create table events (
    n integer primary key,
    action integer,
    number integer,
    session integer,
    session_number integer,
    at_ms integer not null,
    type text not null,
    state text,
    reason text,
    attempt integer,
    sequence integer,
    kind text,
    data text
) strict;

create unique index events_by_action on events (action, number) where action is not null;
create unique index events_by_session on events (session, session_number)
    where session is not null;

create table receipts (
    action integer not null references actions (n) on delete cascade,
    number integer not null,
    kind text not null,
    at_ms integer not null,
    content text not null,
    previous text not null,
    digest text not null,
    attested text not null,
    primary key (action, number)
) strict, without rowid;

-- A key outlives its action: `forget_ms` is set when retention takes the action.
create table idempotency_keys (
    tenant text not null,
    principal text not null,
    capability text not null,
    key text not null,
    op integer not null,
    action_id text not null,
    digest text not null,
    forget_ms integer,
    primary key (tenant, principal, capability, key)
) strict, without rowid;

create index keys_to_forget on idempotency_keys (forget_ms) where forget_ms is not null;
