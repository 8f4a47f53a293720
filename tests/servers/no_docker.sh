#!/bin/sh
# What `cdk deploy` calls in place of Docker, where there is none: each image is taken for built and
# pushed. `inspect` asks whether it was built before.
case "$1" in
inspect) exit 1 ;;
login) cat >/dev/null ;;
esac
