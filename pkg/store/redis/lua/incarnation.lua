-- A line that distinguishes this instance from others that served before: one of INFO replication.
local info = call('INFO', 'replication')
