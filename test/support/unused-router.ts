import type { ModelCapability } from '../../src/config/model-classes.js'
import type {
  ImageProvider,
  KeptResponsesProvider,
  RealtimeProvider,
  RoutedProviderOf,
  VideoProvider,
} from '../../src/providers/contract.js'
import {
  type DocumentRoute,
  type ListedModel,
  type PinnedRoute,
  ProviderRouter,
  type Route,
  type TranscriptionModel,
} from '../../src/routing/router.js'

/** Stands where a test does not come. */
export function unused(): never {
  throw new Error('not in this test')
}

/** A router that a test asks for nothing but what its own kind of it answers. */
export class UnusedRouter extends ProviderRouter {
  route<C extends ModelCapability>(_capability: C, ..._more: readonly unknown[]): Route<RoutedProviderOf<C>> {
    return unused()
  }
  transcriptionWithoutModel(): Route<RealtimeProvider> {
    return unused()
  }
  transcriptionModel(): TranscriptionModel {
    return unused()
  }
  videoChannels(): readonly PinnedRoute<VideoProvider>[] {
    return unused()
  }
  responseChannels(): readonly PinnedRoute<KeptResponsesProvider>[] {
    return unused()
  }
  imageChannels(): readonly PinnedRoute<ImageProvider>[] {
    return unused()
  }
  document(): DocumentRoute | undefined {
    return unused()
  }
  models(): readonly ListedModel[] {
    return unused()
  }
}
