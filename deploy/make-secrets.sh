#!/usr/bin/env bash
# Generates secrets of docker-compose.yml in secrets/; existing files stay. The operator adds the keys of upstreams
# (secrets/p1_key, secrets/m1_key …).
set -euo pipefail
cd "$(dirname "$0")/.."
# Only its owner may enter the folder. The files are readable for all, because the containers run as other users.
mkdir -p secrets
chmod 700 secrets
write() {
  if [ ! -e "secrets/$1" ]; then
    printf '%s' "$2" > "secrets/$1"
    chmod 444 "secrets/$1"
    echo "secrets/$1"
  fi
}
# Letters and digits only, because they are part of URLs.
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
write postgres_password "$(random)"
write redis_password "$(random)"
write grafana_password "$(random)"
write database_url "postgres://gateway:$(cat secrets/postgres_password)@postgres:5432/gateway"
write redis_url "redis://:$(cat secrets/redis_password)@redis:6379"
write gateway_admin_key "sk-gw-admin-$(head -c 32 /dev/urandom | base64 | tr -d '=+/\n')"
write team_a_key "sk-gw-team-a-$(random)"
write callback_secret "whsec_$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
