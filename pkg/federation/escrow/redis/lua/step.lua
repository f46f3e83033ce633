-- step.go.

local function reply(granted)
  local window, term, lasts, left, taken, asked = 0, 0, 0, 0, 0, 0
  if open() then
    window, term, lasts, left, taken, asked = s.index, s.term, s.ends - s.latest, remaining(), s.taken, s.asked
  end
  if not sends then
    return pack(RESULT, granted, s.latest, window, term, lasts, left, taken, asked, 0, 0, 0, 0, 0)
  end
  return pack(RESULT, granted, s.latest, window, term, lasts, left, taken, asked,
    s.seq, s.granted, s.index, s.term, s.next) .. s.holder
end

recall()
read()
local granted = 0
if op == TAKE then
  granted = take()
elseif op == RETURN then
  granted = put_back()
elseif op == ASK then
  prepare()
elseif op == RELEASE then
  release()
elseif op == FILL then
  fill()
elseif op == OPEN then
  open_slice()
end
remember()
return reply(granted)
