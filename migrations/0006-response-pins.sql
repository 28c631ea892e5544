-- Responses that upstreams keep, and the items of their output: whose they are, and which channel knows them. Nothing of their
-- content is here.

create table response_pin (
  owner_id text not null,
  -- Of a response, or of an item of one.
  id text not null,
  response_id text not null,
  channel_id text not null,
  -- Unix milliseconds.
  created_at_ms bigint not null,
  primary key (owner_id, id)
);

create index response_pin_response on response_pin (owner_id, response_id);
create index response_pin_created on response_pin (created_at_ms);
