-- What was used, one row for each request, realtime response and ended task. Times are Unix milliseconds. Counts are
-- numeric, as are costs: nothing that is charged for is rounded. The upstream's own figures are text: jsonb would respell
-- them.

create table usage_record (
  id text primary key,
  request_id text,
  at_ms bigint not null,
  key_id text not null,
  owner_id text not null,
  kind text not null
    constraint usage_record_kind check (kind in ('request', 'response', 'input_transcription', 'task')),
  route text not null,
  model text,
  channel_id text,
  outcome text not null
    constraint usage_record_outcome check (outcome in ('ok', 'caller_left', 'upstream_failed', 'refused')),
  duration_ms bigint,
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
  -- JSON: as the upstream reported it, and as the gateway counted it. The columns above are read from the former where
  -- there is one.
  reported text,
  estimated text,
  pricing text not null constraint usage_record_pricing check (pricing in ('priced', 'unpriced', 'free')),
  -- null where something that was used has no price.
  cost numeric
);

create index usage_record_owner on usage_record (owner_id, at_ms desc, id desc);
create index usage_record_time on usage_record (at_ms);
