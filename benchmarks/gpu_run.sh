#!/usr/bin/env bash
# Runs everything that needs a machine with a GPU, in one command: a build from source, tests, compute-sanitizer,
# timings against the installed PyTorch, and a table. Needs no network.
#
#     benchmarks/gpu_run.sh [quick|full] [PHASE...]
#
# quick (the default) ends within VESTA_GPU_SECONDS (570); full repeats more and may take two hours. Phases, in order:
# env build tests sanitizer micro models report. Each has its own time limit and writes its results into report.json, so
# a run that is cut off keeps what it measured. The exit status is 0 if nothing failed.
#
#     OUT                  where the results go: report.json, table.txt, run.log, tests-N.xml, cudnn_device.json (build/gpu)
#     VESTA_CARRY          a folder made by gpu_carry.sh, where the machine lacks packages
#     VESTA_BUILD          the build tree (build-gpu; build in a rehearsal)
#     VESTA_TORCH_PYTHON   an interpreter with PyTorch (the one that runs this, if it has it)
#     VESTA_GPU=emulation  a rehearsal: the same phases on the emulated device with tiny sizes; its times mean nothing
#     VESTA_GPU_ROUNDS     how often a case is timed with each library in turn (2)
#     VESTA_GPU_ONLY       cases whose name contains this
#     VESTA_GPU_TESTS      pytest's -k for the phase tests
set -uo pipefail
cd "$(dirname "$0")/.." || exit
started=$SECONDS
mode=quick
case ${1:-} in quick | full) mode=$1; shift ;; esac
phases=("$@")
[ ${#phases[@]} -gt 0 ] || phases=(env build tests sanitizer micro models)
for name in "${phases[@]}"; do
  [[ " env build tests sanitizer micro models report " == *" $name "* ]] && continue
  echo "gpu_run.sh: expected a phase of env build tests sanitizer micro models report, got $name" >&2
  exit 2
done

export VESTA_GPU=${VESTA_GPU:-cuda} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
out=${OUT:-build/gpu}
mkdir -p "$out"
report=$out/report.json log=$out/run.log
: >"$log"
if [ "$VESTA_GPU" = emulation ]; then build=${VESTA_BUILD:-build}; else build=${VESTA_BUILD:-build-gpu}; fi
build=$(realpath -m "$build")
export VESTA_BUILD=$build
python=python3
[ -x .venv/bin/python ] && python=$PWD/.venv/bin/python

# Packages that the machine lacks come from the carried folder: Python packages one by one, only those that are missing.
carry=${VESTA_CARRY:+$(realpath "$VESTA_CARRY")}
path=
for package in pybind11 pytest; do
  [ -n "$carry" ] || break
  "$python" -c "import $package as p; assert p.__version__ >= '3'" 2>/dev/null || path=$path:$carry/python/$package
done
export PYTHONPATH=$build/python$path
PATH=$PATH:/usr/local/cuda/bin
torch=${VESTA_TORCH_PYTHON:-}
has_torch='import importlib.util as i, sys; sys.exit(i.find_spec("torch") is None)'
if [ -z "$torch" ] && "$python" -c "$has_torch"; then torch=$python; fi
torch_option=${torch:+--torch-python $torch}

tiny='' repeats=20 rounds=${VESTA_GPU_ROUNDS:-2} tests=${VESTA_GPU_TESTS:-} only=${VESTA_GPU_ONLY:-}
[ "$mode" = full ] && repeats=50 rounds=3
if [ "$VESTA_GPU" = emulation ]; then
  tiny=--tiny repeats=2 rounds=1 tests=${tests:-exp or devices or there_and_back}
  export VESTA_CUDA_LIBRARY=$build/lib/libvesta_cuda_emulation.so OMP_NUM_THREADS=1
fi
total=${VESTA_GPU_SECONDS:-570} times=1
if [ "$mode" = full ] || [ -n "$tiny" ]; then total=${VESTA_GPU_SECONDS:-7200} times=10; fi

# Runs a phase: phase NAME LIMIT FUNCTION. The limit, in seconds of a quick run, is cut to the time left for the run.
phase() {
  local name=$1 limit=$2 begin=$SECONDS status
  shift 2
  limit=$((limit * times))
  local left=$((total - (SECONDS - started) - 5))
  [ "$limit" -le "$left" ] || limit=$left
  echo "==> $name (at most $limit s)" | tee -a "$log"
  if [ "$limit" -lt 5 ]; then status=124; else
    seconds_of_phase=$limit
    export seconds_of_phase
    "$@" >>"$log" 2>&1
    status=$?
  fi
  "$python" benchmarks/gpu/report.py "$report" end "$name" $status $((SECONDS - begin))
  if [ $status -ne 0 ] && [ $status -ne 77 ]; then tail -n 15 "$log"; fi
  return $status
}

# Runs a command under the limit of its phase; kills it ten seconds after the first signal.
limited() { timeout -k 10 "$seconds_of_phase" "$@"; }

env_phase() {
  limited "$python" benchmarks/gpu/environment.py "$report" $torch_option --device-properties "$out/cudnn_device.json"
}

build_phase() {
  local targets=(vesta vesta_cuda _C _C_cuda) options=()
  [ "$VESTA_GPU" = emulation ] && targets=(vesta vesta_cuda_emulation _C _C_cuda)
  if [ ! -e "$build/build.ninja" ]; then
    options=(-DVESTA_BUILD_TESTS=OFF -DVESTA_BUILD_EXAMPLES=OFF "-DPython_EXECUTABLE=$(command -v "$python")")
    limited cmake -S . -B "$build" -G Ninja "${options[@]}" ${carry:+-DVESTA_CARRY=$carry} || return
  fi
  limited cmake --build "$build" -j "${JOBS:-$(nproc)}" --target "${targets[@]}"
}

tests_phase() {
  limited "$python" benchmarks/gpu/device_tests.py "$report" --junit "$out/tests.xml" \
    --seconds $((seconds_of_phase - 20)) --only "$tests"
}

# Runs every case once at tiny sizes under each tool; in a rehearsal, or without compute-sanitizer, under none. memcheck
# watches our own kernels. racecheck must watch all, and reports cuDNN's too, whose ways of waiting it does not know:
# only a race in one of ours counts.
sanitizer_phase() {
  local once=("$python" benchmarks/gpu/worker.py vesta --tiny --once) status=0
  local end=$((SECONDS + seconds_of_phase)) races=$out/races.txt
  if [ -n "$tiny" ] || ! command -v compute-sanitizer >/dev/null; then
    limited "${once[@]}" || return
    [ -n "$tiny" ] || { echo "compute-sanitizer is not there"; return 77; }
    return 0
  fi
  left() { echo $((end - SECONDS > 5 ? end - SECONDS : 5)); }
  timeout -k 10 "$(left)" compute-sanitizer --tool memcheck --kernel-name kernel_substring=vesta --error-exitcode 9 \
    --print-limit 20 "${once[@]}" || status=$?
  timeout -k 10 "$(left)" compute-sanitizer --tool racecheck --print-limit 1000 "${once[@]}" >"$races" 2>&1 || status=$?
  if grep -A4 "Race reported" "$races" | grep vesta; then status=9; fi
  grep "RACECHECK SUMMARY\|FAILED" "$races"
  return $status
}

compare() {
  limited "$python" benchmarks/gpu/compare.py "$@" --report "$report" --rounds $rounds --repeats $repeats \
    --only "$only" $torch_option $tiny
}
micro_phase() {
  compare micro ceilings host elementwise reductions rows products optimizers indexing random convolutions attention \
    recurrent allocator
}
models_phase() { compare models models; }

commit=$(cat "${carry:-/nowhere}/commit" 2>/dev/null || git describe --always --dirty 2>/dev/null || echo unknown)
"$python" benchmarks/gpu/report.py "$report" begin "$mode" "$commit"
for name in "${phases[@]}"; do
  case $name in
    env) phase env 30 env_phase ;;
    build) phase build 270 build_phase || break ;;
    tests) phase tests 150 tests_phase ;;
    sanitizer) phase sanitizer 60 sanitizer_phase ;;
    micro) phase micro 150 micro_phase ;;
    models) phase models 60 models_phase ;;
    report) ;;  # printed in any case
  esac
done
"$python" benchmarks/gpu/report.py "$report" print | tee "$out/table.txt"
exit "${PIPESTATUS[0]}"
