# The commands of the project. CMake does the work; CMakePresets.json says what each preset is for.
.DEFAULT_GOAL := help
.PHONY: help build build-bench run test test-web bench bench-smoke bench-peers soak image test-kubernetes test-kubernetes-fast compat demo-kubernetes asan ubsan tsan tidy fuzz format format-check

FUZZ_SECONDS ?= 60
export NINJA_STATUS = [%f/%t, %es] $(empty)

sources = $$(find src test bench -name '*.cc' -o -name '*.h')
# Many tests wait for processes most of their time.
ctest = ctest --output-on-failure -j $$(($$(nproc) + 2)) --test-dir

help:  ## this list
	@sed -n 's|^\([a-z -]*\):.*## \(.*\)|  make \1\t\2|p' Makefile | expand -t 26

build:  ## the program, build/release/berth
	@scripts/install-deps build
	@scripts/configure release -DBERTH_TESTS=OFF -DBERTH_BENCH=OFF
	ninja -C build/release

image: build  ## the program as an OCI archive, build/berth-image.tar
	@scripts/image build/release/berth build/berth-image.tar

build-bench:  ## the benchmarks, build/release/bench/
	@scripts/install-deps build
	@scripts/configure release -DBERTH_TESTS=OFF -DBERTH_BENCH=ON
	ninja -C build/release

run: build  ## plan the example cluster (exit code 10: some workloads wait), then a demo on the embedded one
	@build/release/berth plan -f examples/team-cluster || { rc=$$?; [ $$rc -eq 10 ] || exit $$rc; }
	@echo
	build/release/berth up --demo

test:  ## all tests, on the release build
	@scripts/install-deps build test
	@scripts/configure release -DBERTH_TESTS=ON -DBERTH_BENCH=OFF
	ninja -C build/release
	$(ctest) build/release

test-web: build  ## the web page in a browser, and that web/built is what its sources give
	@scripts/install-deps web
	@scripts/test-web build/release/berth

bench: build-bench  ## all benchmarks
	@for program in build/release/bench/*; do \
	  [ -f "$$program" ] && [ -x "$$program" ] || continue; \
	  echo "== $$program"; "$$program" || exit 1; done

bench-smoke: build-bench  ## every benchmark at a size of seconds
	@scripts/bench-smoke

bench-peers: build  ## berth beside kube-scheduler, Kueue, KAI and Volcano (an hour or more; PEERS=OPTIONS, see bench/peers/peers.py)
	@scripts/install-deps kubernetes
	@bench/peers/peers.py $(PEERS)

test-kubernetes:  ## on a real Kubernetes 1.37: API suite, clients, controller, scenarios, a node (up to an hour)
test-kubernetes-fast:  ## the half of it that a change must pass (4 minutes once its programs are built)
compat:  ## with what is not Kubernetes 1.37: Kubernetes 1.34, Helm, KWOK, Prometheus
test-kubernetes test-kubernetes-fast compat:
	@scripts/install-deps build test kubernetes
	@scripts/configure release -DBERTH_TESTS=ON
	ninja -C build/release conformance_server scenario_test berth
	@test/kubernetes/run-all $(if $(findstring fast,$@),--fast) $(if $(filter compat,$@),--compat) build/release/test/conformance/conformance_server \
	  build/release/test/scenario_runner/scenario_test build/release/berth

demo-kubernetes: build  ## the whole path on a real Kubernetes with two nodes, step by step; needs root
	@scripts/install-deps kubernetes
	@echo "== programs of Kubernetes and containerd (minutes the first time)"
	@test/kubernetes/build-tools etcd kube-apiserver kubectl kube-controller-manager kubelet containerd \
	  containerd-shim-runc-v2 ctr >/dev/null
	@python3 -B test/kubernetes/end_to_end_test.py build/release/berth --demo

asan ubsan tsan:  ## all tests under address+undefined, undefined or thread sanitizer
	@scripts/install-deps build test analysis
	@scripts/configure $@
	ninja -C build/$@
	$(ctest) build/$@

fuzz:  ## every fuzz target for FUZZ_SECONDS (60)
	@scripts/install-deps build test analysis
	@scripts/configure fuzz
	ninja -C build/fuzz
	@scripts/fuzz $(FUZZ_SECONDS)

soak: export BERTH_SOAK = 1
soak: asan  ## hours: long property runs under sanitizers, then half an hour per fuzz target
	build/asan/test/scenario_runner/scenario_test
	@scripts/configure tidy
	@scripts/tidy --checks=-*,performance-unnecessary-value-param
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=1800

tidy:  ## clang-tidy over every source
	@scripts/install-deps build analysis
	@scripts/configure tidy
	@scripts/tidy

format:  ## clang-format every source in place
	@scripts/install-deps analysis
	@clang-format-19 -i $(sources)

format-check:  ## fail when a source is not formatted
	@scripts/install-deps analysis
	@clang-format-19 --dry-run -Werror $(sources)
