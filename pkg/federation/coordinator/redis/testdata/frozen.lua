-- Goes before the script: the time is the value of the key "clock" while that exists,
-- and nothing is forgotten.
local server = call
now = tonumber(server('GET', 'clock') or now)
local function call(name, ...)
  if name ~= 'PEXPIREAT' then return server(name, ...) end
end
