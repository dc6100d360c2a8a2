// What stands between the suites and the server says what is wrong with a request or an answer.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../checker/check.js'

const json = { 'content-type': 'application/json' }
const ask = (method, url, body, headers = json) => ({ method, url, headers, body: Buffer.from(body ?? '') })
const answer = (status, value, type = 'application/json') => ({
  status,
  headers: { 'content-type': type },
  body: Buffer.from(value === undefined ? '' : JSON.stringify(value)),
})
const signal = ask('POST', '/v2/signals/broadcast', '{"signalName":"s"}')
const broadcast = { signalKey: '2251799813685249', tenantId: '<default>' }

test('what is right is not complained about', async () => {
  assert.deepEqual(await check(signal, answer(200, broadcast)), [])
  const gone = { type: 'about:blank', title: 'NOT_FOUND', status: 404, detail: 'It is not there.', instance: '/v2/x' }
  assert.deepEqual(await check(signal, answer(404, gone, 'application/problem+json')), [])
  const address = '/v2/process-instances/2251799813685249/cancellation'
  assert.deepEqual(await check(ask('POST', address), answer(204)), [])
})

const { tenantId, ...withoutTenant } = broadcast
for (const [what, asked, answered, complaint] of [
  ['a field is missing', signal, answer(200, withoutTenant), /answer tenantId/],
  ['a field is of another type', signal, answer(200, { ...broadcast, signalKey: 7 }), /answer signalKey/],
  ['a field is not described', signal, answer(200, { ...broadcast, colour: 'red' }), /has colour, which is not described/],
  ['another status is told', signal, answer(204), /status is none of 200/],
  ['the request is wrong', ask('POST', signal.url, '{"signal":"s"}'), answer(200, broadcast), /request body.signalName/],
  ['there is no such operation', ask('GET', '/v2/signals'), answer(200, {}), /is none of the API/],
  ['a refusal is no problem', signal, answer(400, {}), /has the type application\/json/],
  ['a problem has another status', signal, answer(400, { status: 404 }, 'application/problem+json'), /says status 404/],
]) {
  test(`it is said that ${what}`, async () => {
    const [first] = await check(asked, answered)
    assert.match(first ?? 'nothing', complaint)
  })
}
