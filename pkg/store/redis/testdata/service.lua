-- Stands in for lua/server.lua: INFO shows no more of its instance than a leader, the value
-- of the key "leader".
local function call(name, ...)
  if name ~= 'INFO' then return redis.call(name, ...) end
  local leader = redis.call('GET', 'leader')
  return leader and '# Cluster\r\ncluster_enabled:0\r\nprimary_member:' .. leader .. '\r\n' or '# Cluster\r\n'
end
