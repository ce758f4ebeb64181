// Package buildinfo describes this build of Slipway: the version that the linker sets, and the commit and time that the
// Go tool records.
package buildinfo

import (
	"runtime"
	"runtime/debug"

	componentversion "k8s.io/component-base/version"
)

// version is set with -ldflags "-X github.com/slipwayhq/slipway/internal/buildinfo.version=v0.1.0". It is a variable
// only because the linker cannot set constants; it does not change at run time.
var version = "v0.0.0-dev"

// Info describes a build. `slipway version --output json` prints it, so the JSON names must not change.
type Info struct {
	Version    string `json:"version"`             // of slipway
	Kubernetes string `json:"kubernetesVersion"`   // of the bundled components, "v1.36.3"
	ClusterAPI string `json:"clusterAPIVersion"`   // of the served API
	Commit     string `json:"commit,omitempty"`    // empty if the build did not record it
	BuildTime  string `json:"buildTime,omitempty"` // of the commit, RFC 3339
	Modified   bool   `json:"modified,omitempty"`  // the working tree had changes
	Go         string `json:"goVersion"`
	Platform   string `json:"platform"` // "linux/amd64"
}

// Get returns the description of this build. `slipway version` prints it.
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

// Version returns the version of Slipway. For example, `slipway version`, backups and the status of `slipway up`
// contain it.
func Version() string { return version }

// Kubernetes returns the version of the Kubernetes components in this binary, as set by the linker. A build without it
// returns "v0.0.0-master+$Format:%H$".
func Kubernetes() string { return componentversion.Get().GitVersion }
