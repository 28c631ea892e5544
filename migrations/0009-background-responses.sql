-- Responses that upstreams make in the background: each is asked for until it has ended, and what it has used is recorded. Nothing of
-- their content is here.

create table background_response (
  owner_id text not null,
  id text not null,
  channel_id text not null,
  -- As the caller named it.
  model text not null,
  -- Of the request, for the usage record.
  route text not null,
  -- Unix milliseconds.
  created_at_ms bigint not null,
  next_poll_at_ms bigint not null,
  -- Leased to a process until then.
  locked_until_ms bigint not null default 0,
  polls integer not null default 0,
  -- Polls in a row whose upstream did not know the response.
  misses integer not null default 0,
  primary key (owner_id, id)
);

create index background_response_due on background_response (greatest(next_poll_at_ms, locked_until_ms));
