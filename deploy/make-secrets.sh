#!/usr/bin/env bash
# Makes the secrets of docker-compose.yml that can be made, in secrets/; what is there already stays as it is. The keys of
# upstreams (secrets/p1_key, secrets/m1_key …) are yours to put there.
set -euo pipefail
cd "$(dirname "$0")/.."
# Nobody else may enter the folder. The files themselves are readable, as the containers' users are not yours.
mkdir -p secrets
chmod 700 secrets
write() {
  if [ ! -e "secrets/$1" ]; then
    printf '%s' "$2" > "secrets/$1"
    chmod 444 "secrets/$1"
    echo "secrets/$1"
  fi
}
# Letters and digits alone, as they stand in URLs.
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
write postgres_password "$(random)"
write redis_password "$(random)"
write grafana_password "$(random)"
write database_url "postgres://gateway:$(cat secrets/postgres_password)@postgres:5432/gateway"
write redis_url "redis://:$(cat secrets/redis_password)@redis:6379"
write gateway_admin_key "sk-gw-admin-$(head -c 32 /dev/urandom | base64 | tr -d '=+/\n')"
write team_a_key "sk-gw-team-a-$(random)"
write callback_secret "whsec_$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
