-- The arguments, the layout of an escrow, and the reply. Integers are packed, big
-- endian.
--
-- KEYS: escrow   a string: MEMORY and the holder's name
-- ARGV: command  escrow.Command without Holder and Since; the numbers of a Grant that
--                count
--       holder   Command.Holder
-- The reply is RESULT and the holder's name.

local VERSION = 1
local COMMAND = '>Blllllllllllll'
local MEMORY, MEMORY_BYTES = '>Bc54lllllllllllll', 159
local RESULT = '>lllllllllllll'

local TAKE, RETURN, ASK, RELEASE, FILL, OPEN = 1, 2, 3, 4, 5, 6
local MAX_WINDOW, MAX_EXACT, MAX_LIMIT = 744 * 3600 * 1000000, 9007199254740991, 1000000000000

local unpack, pack, sub = struct.unpack, struct.pack, string.sub
local smaller, larger, floor = math.min, math.max, math.floor

local op, least, want, keep, index, slice, at, expires_in, age,
  g_seq, g_index, g_term, g_granted, g_slice = unpack(COMMAND, ARGV[1])
local holder = ARGV[2]
