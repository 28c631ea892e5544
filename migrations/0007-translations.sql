-- Requests that were translated to the dialect of their upstream, and keys that take no loss in that.

alter table usage_record
  -- JSON: the dialects, and the paths of fields that were approximated or dropped. null = nothing was translated.
  add column if not exists translation text;

alter table api_key
  -- `strict`: what would be approximated or dropped is refused. null = it is not.
  add column if not exists translation text;
