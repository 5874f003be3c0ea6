//go:build tools

// Names the commands that go.mod and go.sum pin; nothing is compiled from this file.
package main

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
