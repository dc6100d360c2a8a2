// The server's exported records, one JSON object per line. Incident keys are not visible over gRPC, so they are read
// here; a test that needs one is skipped when OSMIA_RECORDS is not set.

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE_MS = 120_000
const file = process.env.OSMIA_RECORDS

export const needsRecords = { skip: file ? false : 'OSMIA_RECORDS is not set: incident keys are unknown' }

// The first incident of the instance; waits until it is exported.
export async function incident(processInstanceKey) {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    const found = await search(processInstanceKey)
    if (found) return found
    await sleep(50)
  }
  throw new Error(`No incident of instance ${processInstanceKey} was exported.`)
}

async function search(processInstanceKey) {
  for await (const line of createInterface({ input: createReadStream(file, 'utf8') })) {
    if (!line.includes('"INCIDENT"') || !line.includes(processInstanceKey)) continue
    const record = parse(line)
    if (
      record?.recordType === 'EVENT' &&
      record.intent === 'CREATED' &&
      record.value.processInstanceKey === processInstanceKey
    ) {
      return { key: record.key, ...record.value }
    }
  }
  return undefined
}

// Keys are larger than a JavaScript number holds exactly, so they are read as text, as this client has them. The last
// line may still be in the middle of being written: it is read the next time.
function parse(line) {
  try {
    return JSON.parse(line.replace(/"(\w*[kK]ey)":\s*(-?\d+)/g, '"$1":"$2"'))
  } catch {
    return undefined
  }
}
