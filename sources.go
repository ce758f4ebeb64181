// Package slipway is the root of the repository.
//
// Does: has the sources of the packages that a program of a further Kubernetes version is compiled from.
//
// Never: holds code. The tests of the architecture are beside it.
//
// Read first: Sources.
package slipway

import "embed"

// Sources are the packages that the program of a further Kubernetes version is compiled from (internal/releases): that version
// is of other modules than this build, and Go has one version of a module in a program.
//
//go:embed internal/heap/*.go internal/plane/apiserver/*.go internal/plane/components/*.go internal/plane/controllers/controllers.go
//go:embed internal/plane/controllers/doc.go internal/plane/group/*.go internal/plane/handover/*.go internal/plane/program/*.go internal/plane/scheduler/*.go
var Sources embed.FS
