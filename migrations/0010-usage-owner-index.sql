-- A caller's records in the order of their times. The index held the id of each record as well, and grew at its front: in an
-- embedded store it took more of the time of an insert than any other. Records of one millisecond are sorted when they are read.

drop index usage_record_owner;
create index usage_record_owner on usage_record (owner_id, at_ms);
