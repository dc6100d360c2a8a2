// Stands between clients and a server and checks everything that is said over REST against the API: node main.js HOST:PORT
//
// Prints its own address when it is ready. GET /-/findings answers how much was checked since it was asked last, and then a
// line for each thing that is wrong.

import { Agent, createServer, request as send } from 'node:http'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { check } from './check.js'

const [host, port] = process.argv[2].split(':')
const agent = new Agent({ keepAlive: true })
let checked = 0
let findings = new Map()
let pending = Promise.resolve()

const read = async (stream) => Buffer.concat(await stream.toArray())
const unpack = { gzip: gunzipSync, br: brotliDecompressSync, deflate: inflateSync }

async function note(asked, answer) {
  try {
    for (const found of await check(asked, answer)) findings.set(found, (findings.get(found) ?? 0) + 1)
  } catch (error) {
    findings.set(`${asked.method} ${asked.url} cannot be checked: ${error.stack}`, 1)
  }
  checked += 1
}

async function report(response) {
  await pending
  const lines = [checked, ...[...findings].map(([found, times]) => `${found} (${times} times)`)]
  checked = 0
  findings = new Map()
  response.end(`${lines.join('\n')}\n`)
}

async function pass(request, response) {
  if (request.url === '/-/findings') return report(response)
  const body = await read(request)
  const { method, url, headers } = request
  const onward = send({ agent, host, port, method, path: url, headers })
  // Who gives up here gives up there, and the other way round.
  response.on('close', () => response.writableFinished || onward.destroy())
  onward.on('error', () => response.destroy())
  onward.on('response', async (incoming) => {
    const packed = await read(incoming).catch(() => undefined)
    if (packed === undefined) return response.destroy()
    const { statusCode: status, headers: answered, rawHeaders } = incoming
    const plain = unpack[answered['content-encoding']] ?? ((bytes) => bytes)
    pending = Promise.all([pending, note({ method, url, headers, body }, { status, headers: answered, body: plain(packed) })])
    response.writeHead(status, rawHeaders)
    response.end(packed)
  })
  onward.end(body)
}

// It ends with who started it, also when that was killed.
const parent = process.ppid
setInterval(() => process.ppid === parent || process.exit(), 1_000)

const server = createServer((request, response) => pass(request, response).catch(() => response.destroy()))
server.keepAliveTimeout = 120_000
server.requestTimeout = 0
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`))
