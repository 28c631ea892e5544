import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { ProvidersModule } from '../providers/providers.module.js'
import { SpeechController } from './speech/speech.controller.js'
import { SpeechService } from './speech/speech.service.js'
import { TranscriptionController } from './transcription/transcription.controller.js'
import { TranscriptionService } from './transcription/transcription.service.js'

/** Speech synthesis, transcription and translation (specification: audio interfaces). */
@Module({
  imports: [AuthModule, ProvidersModule],
  controllers: [SpeechController, TranscriptionController],
  providers: [SpeechService, TranscriptionService],
})
export class AudioModule {}
