// Package slipway is the root of the repository. It embeds the source code of the packages from which the control plane
// program of another Kubernetes version is compiled ([Sources]). It contains no other production code; the architecture
// tests are in this directory.
package slipway

import "embed"

// Sources has the source code of the packages from which the control plane program of another Kubernetes version is
// compiled (internal/nodeimage/versions). That version requires other module versions than this build, and a Go program
// can contain only one version of a module.
//
//go:embed internal/heap/*.go internal/controlplane/components/*.go internal/controlplane/program/*.go
//go:embed internal/controlplane/childproc/doc.go internal/controlplane/childproc/receive.go
//go:embed internal/controlplane/listeners/doc.go internal/controlplane/listeners/merge.go
var Sources embed.FS
