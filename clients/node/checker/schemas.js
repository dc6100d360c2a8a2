// What the API takes and answers, by the schemas that come with the official client of it. The client keeps them to itself, so
// they are looked up in its files: each operation is a function there with its method and path, and has a schema by its name.

import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = new URL('.', import.meta.resolve('@camunda8/orchestration-cluster-api'))
const names = readdirSync(folder)
const only = (pattern) => {
  const found = names.filter((name) => pattern.test(name))
  if (found.length !== 1) throw new Error(`The client has ${found.length} files like ${pattern}; one was expected.`)
  return new URL(found[0], folder)
}

const schemas = await import(only(/^zod\.gen-.*\.js$/))
const declared = readFileSync(only(/^index-.*\.d\.ts$/), 'utf8')
const sources = names.filter((name) => /^(index|chunk-.*)\.js$/.test(name))
const code = sources.map((name) => readFileSync(fileURLToPath(new URL(name, folder)), 'utf8')).join('\n')

const FUNCTION = /^var (\w+) = \(options\) => \{\s+return \(options\??\.client \?\? client\)\.(\w+)\(\{[^]*?url: "([^"]+)"/gm
const operations = [...code.matchAll(FUNCTION)].map(([, name, method, path]) => {
  const capital = name[0].toUpperCase() + name.slice(1)
  const answers = new RegExp(`type ${capital}Responses = \\{([^}]*)\\}`).exec(declared)
  return {
    name,
    method: method.toUpperCase(),
    parts: `/v2${path}`.split('/'),
    request: required(`z${capital}Data`),
    answer: required(`z${capital}Response`),
    statuses: [...answers[1].matchAll(/^\s+(\d{3}):/gm)].map(([, status]) => Number(status)),
  }
})
if (operations.length < 150) throw new Error(`Only ${operations.length} operations were found in the client.`)

export const problem = required('zProblemDetail')

function required(name) {
  if (!schemas[name]) throw new Error(`The client has no schema ${name}.`)
  return schemas[name]
}

// The operation, and what its path says. Where words and parameters both fit, the words are meant.
export function find(method, path) {
  const given = path.split('/')
  const fits = (operation) =>
    operation.method === method &&
    operation.parts.length === given.length &&
    operation.parts.every((part, at) => part.startsWith('{') || part === given[at])
  const parameters = (operation) => operation.parts.filter((part) => part.startsWith('{')).length
  const [operation] = operations.filter(fits).sort((one, other) => parameters(one) - parameters(other))
  if (!operation) return undefined
  const values = {}
  operation.parts.forEach((part, at) => {
    if (part.startsWith('{')) values[part.slice(1, -1)] = decodeURIComponent(given[at])
  })
  return { ...operation, values }
}
