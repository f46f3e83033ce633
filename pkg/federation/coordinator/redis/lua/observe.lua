-- All that is remembered of a budget, as memory.lua keeps it: fields and values.

return call('HGETALL', KEYS[1])
