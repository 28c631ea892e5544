const words = (text) => text.trim().split(/\s*,\s*/)

/** Words of a few fields: nouns with a plain plural, verbs in the infinitive with a plain third person. */
export const TOPICS = [
  {
    name: 'Water Heating',
    nouns: words(
      'boiler, kettle, filter, thermostat, pipe, valve, reservoir, heater, sensor, element, regulator, pump, inlet, condenser',
    ),
    adjectives: words(
      'efficient, insulated, final, mineral, residual, thermal, high-pressure, temperature-controlled, ordinary, portable',
    ),
    verbs: words('heat, protect, affect, drain, supply, regulate, measure, circulate, overflow, refill'),
    things: words('temperature, maintenance, consumption, hardness, insulation, evaporation, pressure, flow'),
    units: words('litres, kilowatts, degrees, minutes, bars'),
  },
  {
    name: 'Public Libraries',
    nouns: words(
      'library, catalogue, reader, shelf, collection, librarian, manuscript, loan, archive, newspaper, lecture, register, branch, volume',
    ),
    adjectives: words(
      'historical, municipal, official, different, well-read, open-access, digital, neglected, regional, affordable',
    ),
    verbs: words('offer, preserve, borrow, digitise, lend, classify, recommend, organise, attract, reflect'),
    things: words('literature, access, circulation, funding, education, curiosity, membership, conservation'),
    units: words('volumes, visitors, shelves, loans, hours'),
  },
  {
    name: 'Regional Railways',
    nouns: words(
      'locomotive, platform, junction, timetable, passenger, signal, carriage, viaduct, conductor, tunnel, depot, crossing, freight train, station',
    ),
    adjectives: words(
      'electrified, frequent, narrow-gauge, suburban, efficient, overnight, single-track, sufficient, punctual, scenic',
    ),
    verbs: words('connect, delay, electrify, serve, transport, inspect, modernise, replace, shuffle, interrupt'),
    things: words('traffic, capacity, punctuality, infrastructure, electrification, timetabling, ridership, safety'),
    units: words('kilometres, tonnes, trains, passengers, minutes'),
  },
  {
    name: 'Urban Beekeeping',
    nouns: words(
      'hive, colony, queen, beekeeper, blossom, frame, swarm, meadow, orchard, rooftop, drone, inspector, brood chamber, smoker',
    ),
    adjectives: words(
      'gentle, healthy, flowering, officious, wild, late-summer, industrious, infested, local, fragrant',
    ),
    verbs: words('pollinate, collect, harvest, inspect, protect, feed, observe, winter, disturb, strengthen'),
    things: words('nectar, pollination, honey, temperature, propolis, biodiversity, forage, ventilation'),
    units: words('kilograms, frames, colonies, grams, days'),
  },
  {
    name: 'Object Storage',
    nouns: words(
      'bucket, replica, client, checksum, manifest, shard, coordinator, snapshot, request, scheduler, namespace, disk, volume, controller',
    ),
    adjectives: words(
      'distributed, consistent, idempotent, read-only, efficient, offline, configurable, append-only, stale, redundant',
    ),
    verbs: words(
      'replicate, compress, verify, configure, buffer, invalidate, encrypt, transfer, acknowledge, partition',
    ),
    things: words('latency, throughput, consistency, configuration, encryption, bandwidth, durability, compaction'),
    units: words('gigabytes, requests, milliseconds, shards, nodes'),
  },
  {
    name: 'Harbour Operations',
    nouns: words(
      'vessel, crane, container, quay, pilot, terminal, warehouse, customs officer, tugboat, breakwater, berth, manifest, lighthouse, ferry',
    ),
    adjectives: words(
      'tidal, refrigerated, commercial, deep-water, official, sheltered, congested, seasonal, coastal, fixed',
    ),
    verbs: words('unload, navigate, moor, inspect, schedule, refuel, guide, dispatch, dredge, weigh'),
    things: words('navigation, throughput, visibility, salvage, documentation, congestion, logistics, dredging'),
    units: words('tonnes, containers, metres, knots, berths'),
  },
]

export const PEOPLE = words(
  'Ada Miller, Tomas Reyes, Ingrid Falk, Samuel Okafor, Priya Nair, Lucas Moreau, Hana Sato, Olga Petrova, Edwin Baker, Maria Lindqvist, Farid Aziz, Nora Whitfield',
)

export const ADVERBS = words(
  'usually, rarely, immediately, sufficiently, frequently, gradually, officially, reliably, automatically, carefully',
)

export const PLACES = words(
  'in the northern district, at the main site, during the first trial, under normal conditions, after the second review, in most cities, along the coast, within a single season, on the test bench, in the reference configuration',
)

export const MODIFIERS = words(
  'long-term, well-known, so-called, small, large, recent, carefully tested, simple, independent, additional, first, important, typical',
)
