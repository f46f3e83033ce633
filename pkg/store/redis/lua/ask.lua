-- What is asked, and what it is asked of.

local op, first, any, retention, min, want, granted_at, buckets, max_delay, lifetime, p_since, default, reached, recalled, doubtful, behind =
  unpack(COMMAND, ARGV[2])
-- MGET calls a key of another type missing; GET calls it an error.
local values = call('MGET', KEYS[1], KEYS[2])
local old, guard = values[1] or call('GET', KEYS[1]), values[2] or call('GET', KEYS[2])

-- remembered returns limiter.Memory.Since for the limit, by what the guard says and the
-- holder recalls, and the start of its memory. A memory that the holder does not know
-- may have begun while the clock was behind: those before granted from later windows.
local function remembered(line, since, origin, lost)
  if retention == RESUME then return 0, 0 end
  local begun = retention == LOSSLESS and lost or since
  if #ARGV[2] > COMMAND_BYTES then
    local id = memory_id(line, since)
    for at = COMMAND_BYTES + 1, #ARGV[2], 8 do
      local born = sub(ARGV[2], at, at + 7)
      if born == id or retention == LOSSLESS and born == origin then return 0, begun end
    end
  end
  local known = larger(begun, doubtful)
  if recalled > 0 and recalled ~= begun then known = larger(known, behind) end
  return known, begun
end
