-- remembered returns limiter.Memory.Since for the limit of a command, by what the guard
-- says and the holder recalls, and the start of its memory. A memory that the holder does
-- not know may have begun while the clock was behind: those before granted from later
-- windows. When the guard does not say up to when, that instant is returned, too, to be
-- noted for holders that never asked the other memories, and whether one of those is
-- younger. A limit that was born in this memory has forgotten nothing, unless this or
-- another holder was answered by a younger one: then it is as any other.
local function remembered(command, line, since, origin, lost, flags, volatile, durable)
  local _, _, _, retention, _, _, _, _, _, _, _, _, _, recalled, doubtful, behind = unpack(COMMAND, command)
  if retention == RESUME then return 0, 0 end
  local begun, doubt = since, volatile
  if retention == LOSSLESS then begun, doubt = lost, durable end
  local known = larger(begun, doubtful)
  if recalled > 0 and recalled ~= begun then known = larger(known, behind) end
  local followed = recalled > begun
  local learned = known > begun and (known > doubt or followed and flags < FOLLOWED) and larger(known, doubt) or nil
  if #command > COMMAND_BYTES and recalled <= begun and flags < FOLLOWED then
    local id = memory_id(line, since)
    for at = COMMAND_BYTES + 1, #command, 8 do
      local born = sub(command, at, at + 7)
      if born == id or retention == LOSSLESS and born == origin then return 0, begun, learned, false end
    end
  end
  return larger(known, doubt), begun, learned, followed
end
