-- Responses of translated models, which no upstream keeps: what was asked and what was answered, for 30 days.

create table kept_response (
  owner_id text not null,
  id text not null,
  -- The response whose conversation it goes on with. null = none that is kept here.
  previous text,
  -- JSON of the response; the items of its output are rows of kept_item.
  response text not null,
  -- Of all its items.
  item_bytes integer not null,
  -- Unix milliseconds.
  created_at_ms bigint not null,
  primary key (owner_id, id)
);

create index kept_response_created on kept_response (created_at_ms);

create table kept_item (
  owner_id text not null,
  response_id text not null,
  -- In the order of the conversation: the input, then the output.
  place integer not null,
  -- The caller's own, or one that the gateway gave it.
  id text not null,
  is_output boolean not null,
  -- Whether a translation has made it, in this response or in the one that a reference to it names.
  is_made boolean not null,
  -- JSON, as it was spelled.
  item text not null,
  primary key (owner_id, response_id, place),
  foreign key (owner_id, response_id) references kept_response (owner_id, id) on delete cascade
);

create index kept_item_id on kept_item (owner_id, id);
