#!/usr/bin/env bash
# npm's HTTP client tries again for a host name that does not exist, although its list of such errors leaves it out.
#
# Expected: make-fetch-happen, with which npm fetches, has a list of the errors after which it tries again. It is short:
#   resets, refusals, timeouts. A name that does not exist (ENOTFOUND), or for which no server answers (EAI_AGAIN), is not in it.
#   So such a request fails at once.
# Happens: every error of a GET is tried again as often as `retry.retries` says, whether its code is in the list or not. Of a
#   POST none is, also not those in the list.
# Matters: npm waits 10 and then 60 seconds between its three attempts. In a sandbox, a container or a train, `npm install` needs
#   more than a minute to say that there is no network. `npm_config_fetch_retries=0` makes it say so at once.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-fund --no-audit --prefix . make-fetch-happen@15.0.3 >/dev/null

cat >try.cjs <<'JS'
const dns = require('dns')

// Looks up no name: each look-up fails with this code.
let code
let seen
dns.lookup = (name, options, done) => {
  seen += 1
  setImmediate(done, Object.assign(new Error(code), { code }))
}
const fetch = require('make-fetch-happen')

const attempts = async (method, now) => {
  code = now
  seen = 0
  const retry = { retries: 2, minTimeout: 1, maxTimeout: 1 }
  const ended = await fetch(`http://${method}-${now}.invalid/`, { method, retry, agent: false }).then(() => 'an answer', error => error.code)
  return `${method}: ${seen} attempts, ${ended}`
}

(async () => {
  for (const method of ['GET', 'POST']) {
    for (const now of ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED']) console.log(await attempts(method, now))
  }
})()
JS

echo "node $(node --version), make-fetch-happen $(node -p "require('make-fetch-happen/package.json').version")"
node try.cjs | tee seen
diff seen - <<'SEEN'
GET: 3 attempts, ENOTFOUND
GET: 3 attempts, EAI_AGAIN
GET: 3 attempts, ECONNREFUSED
POST: 1 attempts, ENOTFOUND
POST: 1 attempts, EAI_AGAIN
POST: 1 attempts, ECONNREFUSED
SEEN
