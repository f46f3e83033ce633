-- account.go and standing.go.

local account -- of the holder, false for none

local function field_of(member, holder) return 'a' .. pack(NAME, #member, member) .. holder end

-- find reads the account of the holder.
local function find()
  local text = call('HGET', KEYS[1], field_of(c.member, c.holder))
  account = false
  if text then
    account = {}
    account.seq, account.granted = unpack(ACCOUNT, text)
  end
end

-- book sets what the holder was granted altogether.
local function book(granted)
  local t = s.by[c.member]
  if not account then
    account = {granted = 0}
    t.holders = t.holders + 1
  end
  local more = granted - account.granted
  t.granted, s.granted = t.granted + more, s.granted + more
  account.seq, account.granted = c.seq, granted
  written[field_of(c.member, c.holder)] = pack(ACCOUNT, account.seq, account.granted)
end

local function stale() return account and c.seq <= account.seq end

local function granted_to(member)
  local t = s.by[member]
  return t and t.granted or 0
end

-- close_accounts forgets all accounts and vouches.
local function close_accounts()
  account = false
  for _, field in ipairs(call('HKEYS', KEYS[1])) do
    local kind = string.byte(field)
    if kind == 97 or kind == 118 then dropped[field] = true end
  end
  for _, t in ipairs(s.standings) do t.granted, t.holders = 0, 0 end
  s.granted = 0
end
