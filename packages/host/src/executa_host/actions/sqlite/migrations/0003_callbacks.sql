-- Callbacks that are to be delivered, and markers of what retention removed.

insert into counters values ('callback', 0);

create table callbacks (
    n integer primary key,
    action integer not null references actions (n) on delete cascade,
    kind text not null,
    url text not null,
    attempts integer not null default 0,
    created_ms integer not null,
    next_ms integer,
    done_ms integer,
    error text
) strict;

create index callbacks_due on callbacks (next_ms) where next_ms is not null;
create index callbacks_by_action on callbacks (action);

create table removed (
    identity text primary key,
    tenant text not null,
    principals text not null,
    removed_ms integer not null
) strict, without rowid;

create index removed_by_time on removed (removed_ms);
