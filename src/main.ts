import 'reflect-metadata'
import { beginStart } from './app/start-up.js'

// Before the modules of the gateway are read, all of which are behind this import.
beginStart()
await import('./serve.js')
