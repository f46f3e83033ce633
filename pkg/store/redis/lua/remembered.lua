-- remembered returns limiter.Memory.Since for the limit of a command, by what the guard
-- says and the holder recalls, and the start of its memory. A memory that the holder does
-- not know may have begun while the clock was behind: those before granted from later
-- windows. A limit that was born in this memory has forgotten nothing, unless the holder
-- was answered by a younger one: then it is as any other.
local function remembered(command, line, since, origin, lost)
  local _, _, _, retention, _, _, _, _, _, _, _, _, _, recalled, doubtful, behind = unpack(COMMAND, command)
  if retention == RESUME then return 0, 0 end
  local begun = retention == LOSSLESS and lost or since
  if #command > COMMAND_BYTES and recalled <= begun then
    local id = memory_id(line, since)
    for at = COMMAND_BYTES + 1, #command, 8 do
      local born = sub(command, at, at + 7)
      if born == id or retention == LOSSLESS and born == origin then return 0, begun end
    end
  end
  local known = larger(begun, doubtful)
  if recalled > 0 and recalled ~= begun then known = larger(known, behind) end
  return known, begun
end
