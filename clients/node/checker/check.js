// Whether a request that was done, and each answer, are as the API says.

import * as versions from './versions.js'
import { find, problem } from './schemas.js'

// Sentences about what is wrong.
export async function check({ method, url, headers, body }, answer) {
  const { pathname, searchParams } = new URL(url, 'http://server')
  const operation = find(method, pathname)
  const here = `${operation?.name ?? `${method} ${pathname}`} ${answer.status}`
  const say = (part, found) => found.map((text) => `${here}: ${part} ${text}`)
  if (answer.status >= 400) return say('problem', refusal(answer))
  if (!operation) {
    const isNewer = versions.operations.some(([other, path]) => other === method && path.test(pathname))
    return isNewer ? [] : say('operation', ['is none of the API'])
  }
  const wrong = []
  if (!operation.statuses.includes(answer.status)) wrong.push(`${here}: status is none of ${operation.statuses}`)
  const request = { ...(await content(headers, body)), ...(await parameters(operation, searchParams)) }
  wrong.push(...say('request', inRequest(operation.request, request)))
  const { body: answered } = await content(answer.headers, answer.body)
  if (versions.isOlderAnswer(operation.name, headers, answered)) return wrong
  wrong.push(...say('answer', [...issues(operation.answer, answered), ...undescribed(operation, answered)]))
  return wrong
}

function refusal(answer) {
  if (answer.headers['content-type'] !== 'application/problem+json') return [`has the type ${answer.headers['content-type']}`]
  const told = JSON.parse(answer.body)
  if (told.status !== answer.status) return [`says status ${told.status}`]
  return [...issues(problem, told), ...undescribed({ answer: problem }, told)]
}

async function content(headers, body) {
  const type = headers['content-type'] ?? ''
  if (body.length === 0) return {}
  if (type.startsWith('application/json')) return { body: JSON.parse(body) }
  if (!type.startsWith('multipart/form-data')) return { body: body.toString('utf8') }
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  const named = Object.fromEntries(form)
  if (form.has('resources')) named.resources = form.getAll('resources')
  return { body: named }
}

function parameters(operation, searchParams) {
  const given = {}
  if (Object.keys(operation.values).length > 0) given.path = operation.values
  if (searchParams.size > 0) given.query = Object.fromEntries(searchParams)
  return given
}

// In the address everything is text: what should be a number or a boolean is one if it reads like one.
function inRequest(schema, request) {
  const found = issues(schema, request)
  if (found.length === 0 || !request.query) return found
  const read = ([name, text]) => [name, /^(true|false|-?\d+)$/.test(text) ? JSON.parse(text) : text]
  return issues(schema, { ...request, query: Object.fromEntries(Object.entries(request.query).map(read)) })
}

function issues(schema, value) {
  const { error } = schema.safeParse(value)
  const wrong = (error?.issues ?? []).filter((issue) => !isMerelyStrict(issue, value))
  return wrong.map((issue) => `${issue.path.join('.')} ${JSON.stringify(issue)}`)
}

// A time may have an offset, where the schema wants Z, and be empty where that takes it away. And the official SDK sorts by "asc".
function isMerelyStrict(issue, value) {
  const given = issue.path.reduce((inner, name) => inner?.[name], value)
  const at = issue.path.at(-1)
  if (issue.code === 'invalid_format' && issue.format === 'datetime') {
    return WITH_OFFSET.test(given) || (given === '' && (at === 'dueDate' || at === 'followUpDate'))
  }
  return at === 'order' && given === 'asc'
}

const WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d$/

// What the schema does not know is missing in what it parsed.
function undescribed({ name, answer }, value) {
  const { success, data } = answer.safeParse(value)
  if (!success) return []
  const known = versions.fields[name] ?? []
  const unknown = [...missing(value, data, '')].filter((path) => !known.includes(path.replace(/\b\d+\b/g, '*')))
  return unknown.map((path) => `has ${path}, which is not described`)
}

function* missing(value, known, path) {
  if (value === null || typeof value !== 'object') return
  for (const name of Object.keys(value)) {
    if (!(name in known)) yield `${path}${name}`
    else yield* missing(value[name], known[name], `${path}${name}.`)
  }
}
