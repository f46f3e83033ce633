-- The arguments, the layout of a counter, and the reply. Integers are packed, big
-- endian.
--
-- KEYS: counter, guard
-- ARGV: head     version, algorithm, generation, number of rates, the rates
--       command  op, first, any, min, want, at, buckets, max delay, lifetime, since,
--                default weight
--       windows  of a return: each one's rate and index
--       tenant   that asks, when the window is split
--       weights  of the declared tenants, a map in MessagePack
-- A rate is limit, window, burst, offset, monthly.
--
-- A counter is a head, of the generation and the rates that are in force; expires,
-- began, pulse, asked, before; for each rate the meter's index and used; and what
-- else the algorithm needs. Of a sliding sum that are the length of each log and
-- the logs, each an entry after the other of instant and count, and used is the
-- sum of the log. Of a window that is split it is a map in MessagePack of what each
-- tenant was granted.
--
-- The script runs from top to bottom. Most calls end in hot.lua: to make the
-- functions that come after it would cost more than to decide.

local VERSION = 1
local HEAD, RATE, COMMAND, TIMES, METER, ENTRY = '>BBlB', '>llllB', '>BBBllllllll', '>lllll', '>ll', '>ll'
local HEAD_BYTES, RATE_BYTES, ENTRY_BYTES = 11, 33, 16

local TAKE, RETURN, PEEK, RESET = 0, 1, 2, 3
local GRANTED, EXHAUSTED, TOO_LARGE, STALE_GENERATION = 0, 1, 2, 3
local CLOCK_BEHIND, AMNESIA, FORFEITED = 4, 5, 6
local MAX_WINDOW, MAX_EXACT = 744 * 3600 * 1000000, 9007199254740991

local FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG, LEAKY_BUCKET = 0, 1, 2, 5
local WINDOWS, SLIDING, BUCKETS = 0, 1, 2

local MAX_LOG = 1024

local unpack, pack, sub, find, floor = struct.unpack, struct.pack, string.sub, string.find, math.floor
local smaller, larger = math.min, math.max

local op, first, any, min, want, granted_at, buckets, max_delay, lifetime, p_since, default = unpack(COMMAND, ARGV[2])
-- MGET calls a key of another type missing; GET calls it an error.
local values = call('MGET', KEYS[1], KEYS[2])
local old, guard = values[1] or call('GET', KEYS[1]), values[2] or call('GET', KEYS[2])
