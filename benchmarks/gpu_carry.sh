#!/usr/bin/env bash
# Collects what gpu_run.sh needs on a machine without packages: headers and libraries of the installed Debian packages,
# pybind11 and pytest of the project's .venv. (hypothesis, NumPy and SciPy are compiled for one version of Python and
# must be installed there already; pybind11 and pytest run on any version.)
#
#     benchmarks/gpu_carry.sh DIR          then, there: VESTA_CARRY=DIR benchmarks/gpu_run.sh
#
# DIR gets include/, lib/ (as Debian lays them out; CMake finds them by -DVESTA_CARRY=DIR), python/PACKAGE/ (one folder
# per package with its dependencies, so that only missing packages are used) and the file commit. Links are followed.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: benchmarks/gpu_carry.sh DIR" >&2; exit 2; }
target=$(realpath -m "$1")
cd "$(dirname "$0")/.."
most=60  # megabytes

if [ -e "$target" ] && [ ! -e "$target/commit" ]; then
  echo "gpu_carry.sh: expected a new folder or one it made, got $target. Choose another name." >&2
  exit 1
fi
rm -rf "$target"
mkdir -p "$target/include" "$target/lib" "$target/python"
git describe --always --dirty >"$target/commit" 2>/dev/null || echo unknown >"$target/commit"

for package in libsleef-dev libsleef3 libkissfft-dev libfmt-dev libfmt9 catch2 nlohmann-json3-dev; do
  files=$(dpkg -L "$package") || { echo "gpu_carry.sh: $package is not installed. Run .ci/install_dependencies." >&2
    exit 1; }
  while read -r file; do
    case $file in
      *gnuabi* | *.pc) continue ;;
      /usr/include/*-linux-gnu/*) place=include/${file##*-linux-gnu/} ;;
      /usr/include/*) place=${file#/usr/} ;;
      /usr/lib/*) place=${file#/usr/} ;;
      *) continue ;;
    esac
    if [ -f "$file" ]; then install -D -m 644 "$(realpath "$file")" "$target/$place"; fi
  done <<<"$files"
done

site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
carry() {  # carry PACKAGE NAME...: copies what import PACKAGE needs
  local folder=$target/python/$1 name
  mkdir -p "$folder"
  for name in "$@"; do
    cp -r "$site"/$name "$folder/" || { echo "gpu_carry.sh: .venv has no $name. Run .ci/install_dependencies test." >&2
      exit 1; }
  done
}
carry pybind11
carry pytest _pytest pluggy iniconfig packaging pygments py.py 'pytest-*.dist-info'
find "$target/python" -name __pycache__ -prune -exec rm -rf {} +

size=$(du -sm "$target" | cut -f1)
echo "$target: $size MB"
[ "$size" -lt $most ] || { echo "gpu_carry.sh: expected less than $most MB" >&2; exit 1; }
