//go:build tools

// Names the commands that go.mod and go.sum pin; nothing is compiled from this file.
package main

import (
	_ "volcano.sh/volcano/cmd/controller-manager"
	_ "volcano.sh/volcano/cmd/scheduler"
)
