-- Begins the memory of a partition that no call has reached yet.
-- KEYS: guard

recall(KEYS[1], read_clock())
return redis.status_reply('OK')
