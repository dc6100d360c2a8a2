// What is not in the version of the API that the checker has the schemas of, but in a newer one. Another client, camunda-orchestration-sdk,
// has that version and misses none of it.

export const operations = [
  ['POST', /^\/v2\/element-instances\/wait-states\/search$/],
  ['GET', /^\/v2\/process-instances\/\d+\/statistics\/wait-states$/],
]

const ofInstance = ['suspendedDate']
const ofJob = ['businessId', 'priority']
const ofSubscription = [
  ...['businessId', 'inboundConnectorType', 'messageSubscriptionType', 'processDefinitionName'],
  ...['processDefinitionVersion', 'toolName', 'toolProperties'],
]
const ofAuditLog = ['inboundChannelToolName', 'inboundChannelType']
const items = (names) => names.map((name) => `items.*.${name}`)

// Of each operation what may be in its answers besides.
export const fields = {
  activateJobs: ['businessId', 'jobLeaseToken', 'physicalTenantId', 'priority'].map((name) => `jobs.*.${name}`),
  evaluateExpression: ['referencedSecrets'],
  getAuditLog: ofAuditLog,
  getDecisionInstance: ['businessId'],
  getProcessInstance: ofInstance,
  getSystemConfiguration: ['authentication', 'cloud', 'components', 'deployment'],
  getTopology: ['brokers.*.brokerId', 'brokers.*.partitions.*.state'],
  getUserTask: ['businessId'],
  searchAuditLogs: items(ofAuditLog),
  searchCorrelatedMessageSubscriptions: items(['businessId']),
  searchDecisionInstances: items(['businessId']),
  searchJobs: items(ofJob),
  searchMessageSubscriptions: items(ofSubscription),
  searchProcessInstances: items(ofInstance),
  searchUserTaskAuditLogs: items(ofAuditLog),
  searchUserTasks: items(['businessId']),
}

const BEFORE_8_9 = /^camunda-client-java\/8\.[0-8]\./

// Clients of before 8.9 are told nothing of what was deleted.
export function isOlderAnswer(operation, headers, answered) {
  return operation === 'deleteResource' && BEFORE_8_9.test(headers['user-agent']) && answered === undefined
}
