package hosttransfer

import (
	"net/url"
	"os"
	"strings"
)

// The ConfigMap in which a management cluster of `slipway up` publishes its location. It is in a system namespace, so
// that tenants cannot write it. `slipway move` of another version may read it, so the names must stay.
const (
	LocationNamespace = "kube-system"
	LocationName      = "slipway-host"
)

// Location is the location of a management cluster. `slipway up` publishes it, and `slipway move` reads it in both
// management clusters to detect whether they are on the same host.
type Location struct {
	// Dir is its data directory, and Instance the instance ID of the directory.
	Dir, Instance string
	// Boot is the boot ID of the kernel, which is unique to a host.
	Boot string
	// Docker is DOCKER_HOST in the environment of the manager ([DockerAddress]).
	Docker string
}

const bootID = "/proc/sys/kernel/random/boot_id"

// LocationOnHost returns the location of a data directory on this host. `slipway up` publishes it, and `slipway move`
// compares it.
func LocationOnHost(dir, instance string, getenv func(string) string) (Location, error) {
	boot, err := os.ReadFile(bootID)
	return Location{Dir: dir, Instance: instance, Boot: strings.TrimSpace(string(boot)), Docker: DockerAddress(getenv)}, err
}

// DockerAddress returns DOCKER_HOST without a password. The result is stored in the data directory and in a ConfigMap,
// where the password must not be.
func DockerAddress(getenv func(string) string) string {
	host := getenv("DOCKER_HOST")
	if u, err := url.Parse(host); err == nil && u.User != nil {
		u.User = url.User(u.User.Username())
		return u.String()
	}
	return host
}

// Data returns the data of the ConfigMap. Another version of Slipway may read it, so the keys must stay.
func (p Location) Data() map[string]string {
	return map[string]string{"dataDirectory": p.Dir, "instance": p.Instance, "boot": p.Boot, "docker": p.Docker}
}

// LocationFromData parses the data of the ConfigMap. It returns false if the data is incomplete. `slipway move` calls
// it.
func LocationFromData(data map[string]string) (Location, bool) {
	p := Location{Dir: data["dataDirectory"], Instance: data["instance"], Boot: data["boot"], Docker: data["docker"]}
	return p, p.Dir != "" && p.Instance != "" && p.Boot != ""
}
