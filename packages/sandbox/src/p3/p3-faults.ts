import type { FaultAnswer, FaultDialect, StatusFault } from '../server/faults.js'
import { P3Rejection } from './p3-rejection.js'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** What P3 answers for the common faults. A failure in the middle of an event stream has `errorCode`. */
export function p3Faults(headers: Readonly<Record<string, string>>, traceId: string, errorCode: number): FaultDialect {
  return {
    statusAnswer: (fault) => {
      const answer = statusAnswer(fault, traceId)
      return { ...answer, headers: { ...headers, ...answer.headers } }
    },
    errorFrames: () => [`data: ${new P3Rejection(errorCode).body(traceId)}\n\n`],
  }
}

function statusAnswer(fault: StatusFault, traceId: string): FaultAnswer {
  const json = (status: number, code: number, more: Readonly<Record<string, string>> = {}): FaultAnswer => ({
    status,
    headers: { 'content-type': JSON_TYPE, ...more },
    body: new P3Rejection(code).body(traceId),
  })
  switch (fault) {
    case '400':
    case '413':
    case '422':
      return json(Number(fault), 2013)
    case '401':
    case '403':
      return json(Number(fault), 1004)
    case '402':
      return json(402, 1008)
    case '404':
      return { status: 404, headers: { 'content-type': 'text/plain' }, body: '404 page not found' }
    case '429':
      return json(429, 1002, { 'retry-after': '2', 'retry-after-ms': '1200' })
    case 'quota':
      return json(200, 1008)
    case '500':
    case '503':
    case '529':
      return htmlPage(Number(fault))
  }
}

/** The load balancer answers, not the service. */
function htmlPage(status: number): FaultAnswer {
  const title = `${status} Server Error`
  return {
    status,
    headers: { 'content-type': 'text/html' },
    body: `<html>\n<head><title>${title}</title></head>\n<body><center><h1>${title}</h1></center></body>\n</html>\n`,
  }
}
