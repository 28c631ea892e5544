-- Sums of usage_record by the hour, so that a report over months need not read every row. The store keeps them itself,
-- whoever inserts and in the same transaction: no row is missed, none counts twice. hour_ms is the beginning of the hour.

create table usage_hour (
  hour_ms bigint not null,
  owner_id text not null,
  key_id text not null,
  -- Empty: none. What was refused and cost nothing is under none as well: a caller may invent names by the thousand.
  model text not null,
  channel_id text not null,
  -- Of the connection: gateways that write at the same time would wait for each other's rows otherwise.
  shard smallint not null,
  records bigint not null,
  unpriced bigint not null,
  cost numeric not null,
  prompt_tokens numeric,
  cached_tokens numeric,
  cached_audio_tokens numeric,
  cache_write_tokens numeric,
  cache_write_hour_tokens numeric,
  audio_input_tokens numeric,
  completion_tokens numeric,
  audio_output_tokens numeric,
  reasoning_tokens numeric,
  characters numeric,
  audio_seconds numeric,
  videos numeric,
  images numeric,
  documents numeric,
  pages numeric,
  primary key (hour_ms, owner_id, key_id, model, channel_id, shard)
) with (fillfactor = 70);

create index usage_hour_owner on usage_hour (owner_id, hour_ms);

create function add_usage_to_hours() returns trigger language plpgsql as $$
begin
  insert into usage_hour as hour (
    hour_ms, owner_id, key_id, model, channel_id, shard, records, unpriced, cost, prompt_tokens, cached_tokens,
    cached_audio_tokens, cache_write_tokens, cache_write_hour_tokens, audio_input_tokens, completion_tokens,
    audio_output_tokens, reasoning_tokens, characters, audio_seconds, videos, images, documents, pages
  )
  select
    at_ms - at_ms % 3600000, owner_id, key_id,
    case when outcome = 'refused' and pricing = 'free' then '' else coalesce(model, '') end,
    coalesce(channel_id, ''), pg_backend_pid() % 8,
    count(*), count(*) filter (where pricing = 'unpriced'), coalesce(sum(cost), 0),
    sum(prompt_tokens), sum(cached_tokens), sum(cached_audio_tokens), sum(cache_write_tokens),
    sum(cache_write_hour_tokens), sum(audio_input_tokens), sum(completion_tokens), sum(audio_output_tokens),
    sum(reasoning_tokens), sum(characters), sum(audio_seconds), sum(videos), sum(images), sum(documents), sum(pages)
  from added
  group by 1, 2, 3, 4, 5
  -- All take rows in one order, so that none waits for one that waits for it.
  order by 1, 2, 3, 4, 5
  -- A sum of nothing is null.
  on conflict (hour_ms, owner_id, key_id, model, channel_id, shard) do update set
    records = hour.records + excluded.records,
    unpriced = hour.unpriced + excluded.unpriced,
    cost = hour.cost + excluded.cost,
    prompt_tokens = coalesce(hour.prompt_tokens + excluded.prompt_tokens, hour.prompt_tokens, excluded.prompt_tokens),
    cached_tokens = coalesce(hour.cached_tokens + excluded.cached_tokens, hour.cached_tokens, excluded.cached_tokens),
    cached_audio_tokens =
      coalesce(hour.cached_audio_tokens + excluded.cached_audio_tokens, hour.cached_audio_tokens, excluded.cached_audio_tokens),
    cache_write_tokens =
      coalesce(hour.cache_write_tokens + excluded.cache_write_tokens, hour.cache_write_tokens, excluded.cache_write_tokens),
    cache_write_hour_tokens =
      coalesce(hour.cache_write_hour_tokens + excluded.cache_write_hour_tokens, hour.cache_write_hour_tokens, excluded.cache_write_hour_tokens),
    audio_input_tokens =
      coalesce(hour.audio_input_tokens + excluded.audio_input_tokens, hour.audio_input_tokens, excluded.audio_input_tokens),
    completion_tokens =
      coalesce(hour.completion_tokens + excluded.completion_tokens, hour.completion_tokens, excluded.completion_tokens),
    audio_output_tokens =
      coalesce(hour.audio_output_tokens + excluded.audio_output_tokens, hour.audio_output_tokens, excluded.audio_output_tokens),
    reasoning_tokens =
      coalesce(hour.reasoning_tokens + excluded.reasoning_tokens, hour.reasoning_tokens, excluded.reasoning_tokens),
    characters = coalesce(hour.characters + excluded.characters, hour.characters, excluded.characters),
    audio_seconds = coalesce(hour.audio_seconds + excluded.audio_seconds, hour.audio_seconds, excluded.audio_seconds),
    videos = coalesce(hour.videos + excluded.videos, hour.videos, excluded.videos),
    images = coalesce(hour.images + excluded.images, hour.images, excluded.images),
    documents = coalesce(hour.documents + excluded.documents, hour.documents, excluded.documents),
    pages = coalesce(hour.pages + excluded.pages, hour.pages, excluded.pages);
  return null;
end
$$;

-- Waits for inserts that run, and keeps others waiting until all that is there has been added up.
create trigger usage_record_added after insert on usage_record
  referencing new table as added for each statement execute function add_usage_to_hours();

insert into usage_hour (
  hour_ms, owner_id, key_id, model, channel_id, shard, records, unpriced, cost, prompt_tokens, cached_tokens,
  cached_audio_tokens, cache_write_tokens, cache_write_hour_tokens, audio_input_tokens, completion_tokens,
  audio_output_tokens, reasoning_tokens, characters, audio_seconds, videos, images, documents, pages
)
select
  at_ms - at_ms % 3600000, owner_id, key_id,
  case when outcome = 'refused' and pricing = 'free' then '' else coalesce(model, '') end,
  coalesce(channel_id, ''), 0,
  count(*), count(*) filter (where pricing = 'unpriced'), coalesce(sum(cost), 0),
  sum(prompt_tokens), sum(cached_tokens), sum(cached_audio_tokens), sum(cache_write_tokens),
  sum(cache_write_hour_tokens), sum(audio_input_tokens), sum(completion_tokens), sum(audio_output_tokens),
  sum(reasoning_tokens), sum(characters), sum(audio_seconds), sum(videos), sum(images), sum(documents), sum(pages)
from usage_record
group by 1, 2, 3, 4, 5;
