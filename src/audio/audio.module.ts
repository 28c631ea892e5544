import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { SpeechController, TranscriptionController } from './audio.controller.js'
import { SPEECH, TRANSCRIPTIONS, TRANSLATIONS } from './audio.endpoints.js'
import { SpeechService, TranscriptionService } from './audio.service.js'

/** Speech synthesis, transcription and translation (specification: audio interfaces). */
@Module({
  imports: [AuthModule],
  controllers: [SpeechController, TranscriptionController],
  providers: [SpeechService, TranscriptionService],
})
export class AudioModule {
  static readonly endpoints = [SPEECH, TRANSCRIPTIONS, TRANSLATIONS]
}
