-- What a script finds beside the libraries of Lua: yoi, http, fs, env, json, log, base64, crypto, sleep, require.
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
  request = ask,
}

json = { encode = native.encode, decode = native.decode, array = native.array }
base64 = { encode = native.to_base64, decode = native.from_base64 }
crypto = { sha256 = native.sha256, hmac_sha256 = native.hmac_sha256, blake3 = native.blake3 }

-- Where a secret is meant. The host puts it into a request: a script never has its bytes.
local SECRET = "‹secret "

env = {}

-- The mark of a secret that the feature was granted; nil for any other name.
function env.get(name)
  return native.secrets[name] and SECRET .. name .. "›" or nil
end

local function without_secret(text)
  if text:find(SECRET, 1, true) then fail("a secret is the end of one header, and nothing else", "bug") end
  return text
end

-- Headers as texts, and what the host puts into one of them.
local function headers_of(given)
  local plain, secret = {}, nil
  for header, value in pairs(given or {}) do
    value = tostring(value)
    local prefix, name = value:match("^(.-)" .. SECRET .. "(.-)›$")
    if not name then
      plain[header] = without_secret(value)
    elseif secret then
      fail("a request has one secret", "bug")
    else
      secret = { header = header, name = name, prefix = prefix }
    end
  end
  return plain, secret
end

local function escaped(value)
  return (tostring(value):gsub("[^%w%-._~]", function(byte) return ("%%%02X"):format(byte:byte()) end))
end

-- The URL with these fields behind it, in the order of their names.
local function with_query(url, fields)
  local all = {}
  for name, value in pairs(fields or {}) do table.insert(all, escaped(name) .. "=" .. escaped(value)) end
  if #all == 0 then return url end
  table.sort(all)
  return url .. (url:find("?", 1, true) and "&" or "?") .. table.concat(all, "&")
end

http = {}

-- One exchange: `options` has headers, params, and body: a text, or a table that goes as JSON.
function http.request(method, url, options)
  options = options or {}
  local headers, secret = headers_of(options.headers)
  local body = options.body
  if type(body) == "table" then
    body = native.encode(body)
    if not headers["content-type"] then headers["content-type"] = "application/json" end
  end
  for _, value in pairs(options.params or {}) do without_secret(tostring(value)) end
  url, body = without_secret(with_query(url, options.params)), body and without_secret(body)
  local got = ask("http.request", { method = method, url = url, headers = headers, body = body, secret = secret })
  got.ok = got.status >= 200 and got.status < 300
  if (got.headers["content-type"] or ""):find("json", 1, true) then
    local done, value = pcall(native.decode, got.body)
    got.json = done and value or nil
  end
  return got
end

for name, method in pairs({ get = "GET", head = "HEAD", delete = "DELETE" }) do
  http[name] = function(url, options) return http.request(method, url, options) end
end
for name, method in pairs({ post = "POST", put = "PUT", patch = "PATCH" }) do
  http[name] = function(url, body, options)
    local all = { body = body }
    for key, value in pairs(options or {}) do all[key] = value end
    return http.request(method, url, all)
  end
end

-- Files of a root that the feature was granted; without one, of the project.
fs = {}

local LARGEST = 16 << 20

function fs.read(path, root)
  local parts, bytes, from = {}, 0, 0
  repeat
    local got = ask("fs.read", { root = root or "workspace", path = path, offset = from })
    table.insert(parts, got.text)
    bytes, from = bytes + #got.text, got.next
    if bytes > LARGEST then fail(path .. " is over 16 MiB", "exhausted") end
  until not from
  return table.concat(parts)
end

function fs.list(path, root)
  local got = ask("fs.list", { root = root or "workspace", path = path })
  return got.entries, got.more
end

function fs.write(path, text, root)
  ask("fs.write", { root = root or "workspace", path = path, text = text })
end

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
