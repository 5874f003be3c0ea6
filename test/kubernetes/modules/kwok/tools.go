//go:build tools

// Names the command that go.mod and go.sum pin; nothing is compiled from this file.
package main

import _ "sigs.k8s.io/kwok/cmd/kwok"
