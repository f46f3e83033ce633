-- A service that is reached over HTTP may not say by which replication ID it serves. Its
-- instances are then known by their leader, if it names one, and always have replicas.
if not string.find(info, 'master_replid:%x') then
  local leader = string.match(call('INFO', 'cluster'), 'primary_member:([^\r\n]+)') or ''
  info = info .. '\r\nmaster_replid:' .. redis.sha1hex(leader) .. '\r\n'
end
