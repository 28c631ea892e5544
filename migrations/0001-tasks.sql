-- Durable tasks, the events about them, and the answers kept for repeated creates. Times are Unix milliseconds.
-- Objects and bodies are text: jsonb would respell numbers and reorder keys.

create table task (
  id text primary key,
  kind text not null,
  owner_id text not null,
  channel_id text not null,
  model text not null,
  state text not null
    constraint task_state check (state in ('creating', 'unknown', 'submitted', 'processing', 'succeed', 'failed')),
  upstream_task_id text,
  external_task_id text,
  upstream_external_id text not null,
  object text,
  callback_url text,
  callback_token text not null constraint task_callback_token unique,
  next_poll_at_ms bigint not null,
  locked_until_ms bigint not null,
  -- The upstream has called while a poll was under way: the poll that follows must not be put off.
  hastened boolean not null default false,
  polls integer not null default 0,
  misses integer not null default 0,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  deadline_at_ms bigint not null
);

-- An external id is the caller's alone, over both kinds. The id comes first: it is also looked up without its owner.
create unique index task_external_id on task (external_task_id, owner_id) where external_task_id is not null;
create unique index task_upstream_id on task (upstream_task_id, channel_id) where upstream_task_id is not null;
create index task_list on task (owner_id, kind, created_at_ms desc, id desc);
create index task_due on task (greatest(next_poll_at_ms, locked_until_ms)) where state not in ('succeed', 'failed');
create index task_ended on task (updated_at_ms) where state in ('succeed', 'failed');

create table callback_delivery (
  sequence bigint generated always as identity,
  webhook_id text primary key,
  task_id text not null references task (id) on delete cascade,
  owner_id text not null,
  url text not null,
  host text not null,
  body text not null,
  attempts integer not null default 0,
  created_at_ms bigint not null,
  next_attempt_at_ms bigint,
  locked_until_ms bigint not null default 0,
  delivered_at_ms bigint,
  exhausted_at_ms bigint,
  last_error text
);

create index callback_delivery_task on callback_delivery (task_id, sequence);
create index callback_delivery_due on callback_delivery (greatest(next_attempt_at_ms, locked_until_ms))
  where next_attempt_at_ms is not null;
create index callback_delivery_exhausted on callback_delivery (exhausted_at_ms) where exhausted_at_ms is not null;

create table idempotency_key (
  owner_id text not null,
  route text not null,
  key text not null,
  fingerprint text not null,
  -- The key is claimed before its task is written, in one transaction: the reference is checked at its end.
  task_id text not null references task (id) on delete cascade deferrable initially deferred,
  status integer,
  body text,
  expires_at_ms bigint not null,
  primary key (owner_id, route, key)
);

create index idempotency_key_task on idempotency_key (task_id);
create index idempotency_key_expiry on idempotency_key (expires_at_ms);
