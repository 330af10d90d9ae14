# `make test` is the one command that says whether Belljar works here.
.PHONY: build test test-all deps lint bench generate

PEERS := build/npm
export BELLJAR_TEST_NPM := $(CURDIR)/$(PEERS)

build:
	CGO_ENABLED=0 go build -trimpath -o belljar ./cmd/belljar

# What the tests need of the machine. As root, or with sudo, it is installed;
# otherwise the missing part is named and this fails.
deps:
	@test/deps.sh $(PEERS)

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not formatted, run gofmt -w on: $$out"; exit 1; }
	go vet ./...

test: deps lint
	go test -race -shuffle=on -short -timeout 12m ./...

# Adds the long suites: a thousand runs, hundreds of deaths.
test-all: deps lint
	go test -race -shuffle=on -timeout 60m ./...

bench: build
	./belljar bench

generate:
	go generate ./...
