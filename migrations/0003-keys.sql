-- Keys that the operator issues while the gateway runs, and what was done with the operator's own key. Times are Unix
-- milliseconds. Of a key only its SHA-256 is kept, in lower-case hex, and of that nothing is ever shown.

create table api_key (
  -- Listed in the same order everywhere.
  id text collate "C" primary key,
  key_sha256 text not null constraint api_key_sha256 unique,
  -- The first characters of the key, too few to help whoever guesses it.
  hint text not null,
  -- JSON: a list of globs; null = every model.
  models text,
  -- JSON: the limits by name; null = none.
  limits text,
  note text,
  created_at_ms bigint not null,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  -- By the clock of the database, and later with every change: replicas ask for what changed since.
  updated_at_ms bigint not null
);

create index api_key_updated on api_key (updated_at_ms);

create table admin_audit (
  sequence bigint generated always as identity primary key,
  at_ms bigint not null,
  -- Which admin key, by a fingerprint that tells nothing of it; '-' = nobody who was let in.
  actor text not null,
  action text not null,
  target text,
  outcome text not null constraint admin_audit_outcome check (outcome in ('begun', 'done', 'refused', 'failed')),
  -- JSON.
  details text not null,
  request_id text not null
);

create index admin_audit_at on admin_audit (at_ms);
