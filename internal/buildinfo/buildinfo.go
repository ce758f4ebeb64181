// Package buildinfo says which build of Slipway this is.
//
// Does: holds the version that the linker stamps, and reads the commit and time
// that the Go tool records.
//
// Never: is changed at run time; version is a variable only because the linker
// can set nothing else.
//
// Read first: Get.
package buildinfo

import (
	"runtime"
	"runtime/debug"

	componentversion "k8s.io/component-base/version"
)

// version is set with -ldflags "-X github.com/slipwayhq/slipway/internal/buildinfo.version=v0.1.0".
var version = "v0.0.0-dev"

// Info describes a build.
type Info struct {
	Version    string `json:"version"`             // of slipway
	Kubernetes string `json:"kubernetesVersion"`   // of the components the binary carries, "v1.36.3"
	ClusterAPI string `json:"clusterAPIVersion"`   // of the API it serves
	Commit     string `json:"commit,omitempty"`    // empty where the build did not record it
	BuildTime  string `json:"buildTime,omitempty"` // of the commit, RFC 3339
	Modified   bool   `json:"modified,omitempty"`  // the work tree had changes
	Go         string `json:"goVersion"`
	Platform   string `json:"platform"` // "linux/amd64"
}

// Get returns the description of this build.
func Get() Info {
	i := Info{
		Version:    version,
		Kubernetes: Kubernetes(),
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	for _, d := range build.Deps {
		if d.Path == "sigs.k8s.io/cluster-api/api" {
			i.ClusterAPI = d.Version
		}
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value
		case "vcs.time":
			i.BuildTime = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		}
	}
	return i
}

// Version is slipway's version.
func Version() string { return version }

// Kubernetes is the version of the Kubernetes components in this binary, as
// stamped; a build without the stamp says "v0.0.0-master+$Format:%H$".
func Kubernetes() string { return componentversion.Get().GitVersion }
