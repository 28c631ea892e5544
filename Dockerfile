# What the image runs on, once for both stages. Debian, not Alpine: documents are read in processes that prlimit (of
# util-linux, which Debian always has) keeps to their memory.
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
# No package is fetched again unless the list of packages has changed.
COPY package.json package-lock.json .npmrc ./
COPY packages/document-engine/package.json packages/document-engine/
COPY packages/sandbox/package.json packages/sandbox/
RUN npm ci
COPY scripts/build.mjs scripts/bundle.mjs scripts/own-source-map.mjs scripts/prepare-store.mjs scripts/swc-options.mjs scripts/
COPY packages ./packages
COPY src ./src
# The empty store that the gateway unpacks at its first use is made with them.
COPY migrations ./migrations
RUN npm run build

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages/document-engine/package.json packages/document-engine/
COPY packages/sandbox/package.json packages/sandbox/
# Exactly what the lock file names, and no script of a package runs.
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force

FROM ${NODE_IMAGE}
# All that listens does so on all addresses: ports of a container are published one by one.
ENV NODE_ENV=production GATEWAY_CONTAINER=true
WORKDIR /app
# The image cannot start without it: rather fail here than when the first document comes.
RUN prlimit --version
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY migrations ./migrations
# The engine runs in processes of its own; the simulators are in the bundle.
COPY --from=build /app/packages/document-engine/package.json ./packages/document-engine/
COPY --from=build /app/packages/document-engine/dist ./packages/document-engine/dist
COPY --from=build /app/dist ./dist
# The embedded store or, with DATABASE_URL, the usage that PostgreSQL could not take when the gateway ended: a volume of its
# own outlives the container. Beside it, only /tmp is written to (uploads above 1 MiB): the root file system may be read-only.
RUN mkdir data && chown node:node data
VOLUME /app/data
USER node
EXPOSE 8080 9090
# By Node, as the image has no curl. HEALTHCHECK knows no other way to tell the port than the environment's.
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.PORT || 8080, path: '/health/ready', timeout: 2500 }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# Node itself is process 1: SIGTERM drains, SIGHUP reloads, and it waits for the processes it starts itself.
CMD ["node", "--enable-source-maps", "--max-semi-space-size=64", "dist/main.js"]
