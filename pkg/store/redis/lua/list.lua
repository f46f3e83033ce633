-- The list of counters by when they end, as wire.lua describes it.

local LIST = '\1' -- how a member begins that is a list, and no key
local LISTED = '>Hc0' -- a key in it, behind its length
local LIST_BYTES = 4096 -- beyond them a list takes no more keys: it would grow with each sweep
local LISTED_TOGETHER = 1000 -- milliseconds

-- new_lists returns no scores and members, as ZADD takes them.
local function new_lists() return {at = {}} end

-- list adds a key to the members: to the list of those that end within the same second.
local function list(lists, key, ends)
  local score = ends + -ends % LISTED_TOGETHER
  local at = lists.at[score]
  if not at or #lists[at] >= LIST_BYTES then
    at = #lists + 2
    lists[at - 1], lists[at], lists.at[score] = score, LIST, at
  end
  lists[at] = lists[at] .. pack(LISTED, #key, key)
end

-- each_key calls f for each key of a member.
local function each_key(member, f)
  if sub(member, 1, 1) ~= LIST then return f(member) end
  local at, key = 2
  while at <= #member do
    key, at = unpack(LISTED, member, at)
    f(key)
  end
end
