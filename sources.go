// Package slipway is the root of the repository. It embeds the source code of the packages from which the control plane
// program of another Kubernetes version is compiled ([Sources]). It contains no other production code; the architecture
// tests are in this directory.
package slipway

import "embed"

// Sources has the source code of the packages from which the control plane program of another Kubernetes version is
// compiled (internal/releases). This version requires other module versions than this build, and a Go program can
// contain only one version of a module.
//
//go:embed internal/heap/*.go internal/plane/apiserver/*.go internal/plane/components/*.go internal/plane/controllers/controllers.go
//go:embed internal/plane/controllers/doc.go internal/plane/group/*.go internal/plane/handover/*.go internal/plane/program/*.go internal/plane/scheduler/*.go
var Sources embed.FS
