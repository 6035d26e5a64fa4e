-- The requests of one round, sent in turn; written for wrk 4. The plan is a Lua file made by
-- load.py: { tally = boolean, send_s = number, block = integer, per_address = integer,
-- in_a_row = integer, requests = { ... }, proofs = { ... }, proofs_kept = integer }.
--
-- A single request without placeholders is left to wrk as its fixed request, which costs no Lua
-- at all: with a fast server and two cores the generator must not be what is measured.
-- Only where the plan says so are statuses tallied one by one, and is nothing sent any more after
-- `send_s` seconds, so that all that was sent can be answered before wrk cuts the connections.

local ffi = require("ffi")
ffi.cdef([[
  typedef struct { long seconds; long nanoseconds; } moment;
  int clock_gettime(int clock, moment *now);
]])

-- Global, so that `done`, which runs in another Lua state, can ask the thread for them.
-- wrk asks for one request before the start, to look at it; that one has number 0, never sent.
sequence = -1
statuses = {}
locations = {}
location_count = 0
began_s = 0
ended_s = 0

local LOCATIONS_KEPT = 40
local threads = {}
local plan
local templates = {}

local function pieces(text)
  -- Cuts a formatted request into literal strings and the names of placeholders between them.
  local list, start = {}, 1
  while true do
    local from, to, name = string.find(text, "(%u+)", start)
    while from and name ~= "SEQUENCE" and name ~= "ADDRESS" and name ~= "PROOF" do
      from, to, name = string.find(text, "(%u+)", to + 1)
    end
    list[#list + 1] = string.sub(text, start, (from or 0) - 1)
    if not from then
      return list
    end
    list[#list + 1] = name
    start = to + 1
  end
end

local function address(number)
  local value = plan.block * 65536 + math.floor(number / plan.per_address)
  return string.format("10.%d.%d.%d", math.floor(value / 65536), math.floor(value / 256) % 256, value % 256)
end

local function filled(template)
  local parts = {}
  for index, piece in ipairs(template) do
    if index % 2 == 1 then
      parts[index] = piece
    elseif piece == "SEQUENCE" then
      parts[index] = string.format("%08d", sequence)
    elseif piece == "PROOF" then
      parts[index] = plan.proofs[math.max(sequence, 1)]
    else
      parts[index] = address(sequence)
    end
  end
  return table.concat(parts)
end

local moment = ffi.new("moment")

local function now_s()
  local CLOCK_MONOTONIC = 1
  ffi.C.clock_gettime(CLOCK_MONOTONIC, moment)
  return tonumber(moment.seconds) + tonumber(moment.nanoseconds) / 1e9
end

local function next_request()
  sequence = sequence + 1
  return filled(templates[math.floor(sequence / plan.in_a_row) % #templates + 1])
end

local function pause_ms()
  local FOREVER_MS = 600000
  if began_s == 0 then
    began_s = now_s()
  end
  local proofs = #plan.proofs
  if proofs > 0 and sequence > proofs - plan.proofs_kept then
    return FOREVER_MS
  end
  return now_s() < began_s + plan.send_s and 0 or FOREVER_MS
end

local function tally(status, headers)
  ended_s = now_s()
  local key = tostring(status)
  statuses[key] = (statuses[key] or 0) + 1
  if status == 201 and location_count < LOCATIONS_KEPT then
    for name, value in pairs(headers) do
      if string.lower(name) == "location" then
        location_count = location_count + 1
        locations[tostring(location_count)] = value
      end
    end
  end
end

function setup(thread)
  threads[#threads + 1] = thread
end

function init(arguments)
  plan = dofile(arguments[1])
  for index, item in ipairs(plan.requests) do
    templates[index] = pieces(wrk.format(item.method, item.path, item.headers, item.body))
  end
  if #templates == 1 and #templates[1] == 1 then
    local only = plan.requests[1]
    wrk.method, wrk.path, wrk.headers, wrk.body = only.method, only.path, only.headers, only.body
  else
    request = next_request
  end
  if plan.tally then
    response = tally
    delay = pause_ms
  end
end

function done(summary, latency)
  local function line(...)
    io.write(table.concat({ "outcome", ... }, "\t"), "\n")
  end
  line("requests", summary.requests)
  line("duration_us", summary.duration)
  line("received_bytes", summary.bytes)
  line("p50_us", latency:percentile(50))
  line("p99_us", latency:percentile(99))
  for kind, count in pairs(summary.errors) do
    line("error", kind, count)
  end
  for _, thread in ipairs(threads) do
    line("sequence", thread:get("sequence"))
    line("answering_s", string.format("%.6f", thread:get("ended_s") - thread:get("began_s")))
    for status, count in pairs(thread:get("statuses")) do
      line("status", status, count)
    end
    for _, value in pairs(thread:get("locations")) do
      line("location", value)
    end
  end
end
