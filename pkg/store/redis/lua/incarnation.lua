-- What tells this instance from others that served before: a line of INFO replication.
local info = call('INFO', 'replication')
