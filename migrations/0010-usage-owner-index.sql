-- A caller's records in the order of their times. The index held the id of each record as well, and grew at its front: in an
-- embedded store it took more of the time of an insert than any other. Records of one millisecond are sorted when they are read.
-- The old one is dropped last: reads of older replicas, and of this one, go on while the new one is built. Operators may have built it
-- before (docs/operations.md).

create index if not exists usage_record_owner_time on usage_record (owner_id, at_ms);
drop index usage_record_owner;
alter index usage_record_owner_time rename to usage_record_owner;
