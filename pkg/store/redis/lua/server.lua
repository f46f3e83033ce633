-- How the scripts reach the server. Tests put a server with another clock in its
-- place.
local call = redis.call
