-- What a script finds beside the libraries of Lua: yoi, json, log, base64, crypto, sleep, require.
local native = ...
local tools, hooks = {}, {}

-- Errors with a kind are tables, so that a script can compare the kind.
local raised = { __tostring = function(self) return self.message end }

local function fail(message, kind)
  error(setmetatable({ kind = kind or "fix_input", message = tostring(message) }, raised), 0)
end

local function ask(method, params)
  local done, result, kind = native.ask(method, params)
  if not done then fail(result, kind) end
  return result
end

local function register(all, what, name, answer)
  if type(name) ~= "string" or type(answer) ~= "function" then
    error(what .. " takes a name and a function", 3)
  end
  all[name] = answer
end

local State = {}
State.__index = State

-- The newest value; nil before the first update.
function State:get()
  return ask("state.get", { name = self.name }).value
end

-- Replaces the value by change(value), again if it changed meanwhile, and returns it once it is durable.
function State:update(change)
  for _ = 1, 16 do
    local now = ask("state.get", { name = self.name })
    local value = change(now.value)
    if value == nil then value = native.null end
    local done, why, kind =
      native.ask("state.replace", { name = self.name, revision = now.revision, value = value })
    if done then
      if value == native.null then return nil end
      return value
    end
    if kind ~= "retry" then fail(why, kind) end
  end
  fail("the state " .. self.name .. " changes all the time", "retry")
end

yoi = {
  settings = native.settings,
  fail = fail,
  tool = function(name, answer) register(tools, "yoi.tool", name, answer) end,
  hook = function(name, answer) register(hooks, "yoi.hook", name, answer) end,
  state = function(name) return setmetatable({ name = name }, State) end,
  allow = function() return { decision = "allow" } end,
  deny = function(reason) return { decision = "deny", reason = reason } end,
  ask = function(question) return { decision = "ask", question = question } end,
  unchanged = function() return { change = "unchanged" } end,
  replaced = function(value) return { change = "replaced", value = value } end,
  notify = function(text, key) ask("notify", { text = text, key = key }) end,
  alert = function(text, level) ask("alert", { text = text, level = level }) end,
  note = function(text) ask("note", { text = text }) end,
}

json = { encode = native.encode, decode = native.decode, array = native.array }
base64 = { encode = native.to_base64, decode = native.from_base64 }
crypto = { sha256 = native.sha256, hmac_sha256 = native.hmac_sha256, blake3 = native.blake3 }

log = {}
for _, level in ipairs({ "debug", "info", "warn", "error" }) do
  log[level] = function(text) ask("log", { level = level, text = tostring(text) }) end
end

function sleep(seconds)
  local why = native.sleep(seconds)
  if why then fail(why, "exhausted") end
end

-- Standard output has the lines of the contract.
function print(...)
  local texts = table.pack(...)
  for at = 1, texts.n do texts[at] = tostring(texts[at]) end
  native.print(table.concat(texts, "\t"))
end

local loaded, loading = {}, {}

function require(name)
  if loaded[name] ~= nil then return loaded[name] end
  local chunk = native.module(name)
  if loading[name] then error("the module " .. name .. " requires itself", 2) end
  loading[name] = true
  local done, result = pcall(chunk, name)
  loading[name] = nil
  if not done then error(result, 0) end
  if result == nil then result = true end
  loaded[name] = result
  return result
end

-- Text alone: compiled code could do what no text can.
local load_any = load

function load(chunk, name, _, ...)
  return load_any(chunk, name, "t", ...)
end

string.dump, dofile, loadfile = nil, nil, nil

return tools, hooks
