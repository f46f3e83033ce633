#!/usr/bin/env bash
# Installs the servers that the tests start themselves and that no Go module
# holds, and further programs by name: deps.sh [PROGRAM ...]. Where it may not
# install, it says what to install.
set -euo pipefail

# Packages put the programs of Postgres where the PATH does not look.
has_postgres() {
    command -v postgres >/dev/null ||
        compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ||
        compgen -G '/usr/pgsql-*/bin/postgres' >/dev/null ||
        compgen -G '/opt/homebrew/opt/postgresql@*/bin/postgres' >/dev/null
}

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
has_postgres || missing+=(postgresql)
for program in "$@"; do # what only some targets need, named as its package
    command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || missing+=("$program")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi
if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
    echo "installing ${missing[*]} with apt-get" >&2
    "${as_root[@]}" apt-get update -qq
    # The tests start servers of their own; the packaged service must not run.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    exit 0
fi
echo "missing: ${missing[*]}. Install it with your system's package manager (brew install redis postgresql@17, apt-get install redis-server postgresql, dnf install redis postgresql-server)." >&2
exit 1
