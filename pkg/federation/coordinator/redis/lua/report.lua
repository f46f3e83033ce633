-- report.go. A window that is over is changed as the text that is kept of it.

-- closed returns the field of a window that is over, nil when it is not remembered. One
-- in which nobody asked for anything was not noticed.
local function closed(index)
  local at = 1
  while s.closed[at] and s.closed[at] > index do at = at + 1 end
  if s.closed[at] ~= index then
    if index >= s.index or index < s.index - MAX_CLOSED or at > MAX_CLOSED then return end
    if index * s.window < memory.since then return end
    remember(at, index, over(index, 0))
  end
  return 'c' .. index
end

-- count replaces what the member reported before of a window, but never a complete
-- report by an incomplete one.
local function count(text, u)
  local index, limit, granted, members, at = unpack(CLOSED, text)
  local list, found = {}, false
  for i = 1, members do
    local member, has_granted, admitted, refused, reported, complete
    member, has_granted, admitted, refused, reported, complete, at = unpack(MEMBER_USAGE, text, at)
    if member == c.member then
      found = true
      if u.complete == 1 or complete == 0 then
        admitted, refused, reported, complete = u.admitted, u.refused, 1, u.complete
      end
    end
    list[i] = pack_usage(member, has_granted, admitted, refused, reported, complete)
  end
  if not found then list[#list + 1] = pack_usage(c.member, 0, u.admitted, u.refused, 1, u.complete) end
  return pack(CLOSED, index, limit, granted, #list) .. table.concat(list)
end

local function report(m)
  attend(m)
  for _, u in ipairs(c.usage) do
    local field = closed(u.index)
    if field then written[field] = count(written[field] or call('HGET', KEYS[1], field), u) end
  end
  return answer(GRANTED)
end
