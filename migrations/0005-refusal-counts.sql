-- A caller that is refused a thousand times in a minute for one reason leaves one row, which stands for all of them.

alter table usage_record
  add column if not exists requests bigint not null default 1,
  -- Of requests that were refused and have used nothing: the code of their error. null for all others.
  add column if not exists reason text;

-- As before, but that it adds up the requests of rows, not the rows.
create or replace function add_usage_to_hours() returns trigger language plpgsql as $$
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
    sum(requests), coalesce(sum(requests) filter (where pricing = 'unpriced'), 0), coalesce(sum(cost), 0),
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
