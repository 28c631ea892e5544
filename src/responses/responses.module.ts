import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { Clock, SystemClock } from '../tasks/background-work.js'
import { BackgroundBilling } from './background-billing.js'
import { KyselyBackgroundResponses } from './background-responses.pg.js'
import { BackgroundResponses } from './background-responses.js'
import { BackgroundWatcher } from './background-watcher.js'
import { KyselyKeptResponses } from './kept-responses.pg.js'
import { KeptResponseRetention, KeptResponses } from './kept-responses.js'
import { ResponseKeeper } from './response-keeper.js'
import { PendingUsageMarker } from '../storage/pending-usage.js'
import { KyselyResponsePins } from './response-pins.pg.js'
import { ResponsePinRetention, ResponsePins } from './response-pins.js'
import { ResponseReferences } from './response-references.js'
import { ResponsesController } from './responses.controller.js'
import {
  INPUT_TOKENS,
  RESPONSE_CANCEL,
  RESPONSE_DELETE,
  RESPONSE_FIND,
  RESPONSE_INPUT_ITEMS,
  RESPONSES,
} from './responses.endpoints.js'
import { ResponsesService } from './responses.service.js'

/** Responses, and what upstreams and the gateway keep of them. */
@Module({
  imports: [AuthModule, DatabaseModule],
  controllers: [ResponsesController],
  providers: [
    ResponsesService,
    ResponseReferences,
    ResponseKeeper,
    { provide: ResponsePins, useClass: KyselyResponsePins },
    ResponsePinRetention,
    { provide: KeptResponses, useClass: KyselyKeptResponses },
    KeptResponseRetention,
    { provide: Clock, useClass: SystemClock },
    { provide: BackgroundResponses, useClass: KyselyBackgroundResponses },
    PendingUsageMarker,
    BackgroundBilling,
    BackgroundWatcher,
  ],
})
export class ResponsesModule {
  static readonly endpoints = [
    RESPONSES,
    INPUT_TOKENS,
    RESPONSE_FIND,
    RESPONSE_INPUT_ITEMS,
    RESPONSE_CANCEL,
    RESPONSE_DELETE,
  ]
}
