#!/bin/sh
# Builds the spawner for both architectures into the folder given (default: here).
# The committed binaries were made by Debian 12's gcc 12.2.0; a test rebuilds
# them with that compiler and compares byte for byte.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
flags="-Os -std=gnu11 -Wall -Wextra -Werror -static -nostdlib -ffreestanding -fno-pic -no-pie -fno-stack-protector
  -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-tree-loop-distribute-patterns -fcf-protection=none -fno-ident
  -Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-s"
x86_64-linux-gnu-gcc $flags -o "$out/spawner_amd64" spawner.c
flags=$(echo "$flags" | sed 's/-fcf-protection=none//')
aarch64-linux-gnu-gcc $flags -mno-outline-atomics -o "$out/spawner_arm64" spawner.c
